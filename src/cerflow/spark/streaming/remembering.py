"""The work on one bucket in one micro-batch, with a state that a store keeps: a snapshot, and a log of events since.

Each micro-batch appends its events to the log. When the log outgrows the snapshot, a new snapshot takes the place of
both. A process keeps buckets in memory, too; a nonce, new with every change, tells whether they are what the store
holds: if a micro-batch is repeated, or another process took the last one, they are not.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from cerflow import limits
from cerflow.engine.matches.matches import Matches
from cerflow.errors import SnapshotError
from cerflow.spark.streaming.bucket import Bucket, StreamWork
from cerflow.spark.streaming.packing import packed_rows

__all__ = ["BucketStore", "StateHead", "Step", "process"]

#: The version of what is kept in the store.
_FORMAT = 1
_WAY_OUT = "go on with the cerflow that wrote it, or start with a new checkpoint"
#: The cost of an entry of the log beside its bytes.
_ENTRY_BYTES = 100


class StateHead(NamedTuple):
    """Facts about a bucket in a store: sizes in bytes, the watermark in microseconds, the timer in milliseconds.

    Events before the watermark were recognised. ``query`` is a fingerprint of the query and its columns. Without a
    timer it is None.
    """

    format: int
    query: str
    nonce: bytes
    snapshot: int
    log: int
    watermark: int
    timer: int | None


class BucketStore(Protocol):
    """Where one bucket is kept, and what calls when the watermark passes its timer."""

    def head(self) -> StateHead | None:
        """The head that was set last; None at first."""
        ...

    def set_head(self, head: StateHead) -> None:
        """Replace the head."""
        ...

    def chunks(self) -> Iterable[bytes]:
        """The chunks of the snapshot."""
        ...

    def log(self) -> Iterable[bytes]:
        """The blobs of the log."""
        ...

    def append(self, blob: bytes) -> None:
        """Append to the log."""
        ...

    def replace(self, chunks: list[bytes]) -> None:
        """Replace the snapshot, and empty the log."""
        ...

    def set_timer(self, before: int | None, timer: int | None) -> None:
        """Replace one timer by another; it goes off when the watermark has reached it."""
        ...


class Step(NamedTuple):
    """The result of a micro-batch: matches, late events, the numbers of events that came and were released.

    ``state_bytes`` is the size of the state, and ``held`` says that the bucket was in memory.
    """

    matches: list[Matches]
    late: pa.Table
    events: int
    released: int
    bucket: Bucket
    state_bytes: int
    held: bool


#: The buckets of this process, by query and number, those used last at the end.
_held: OrderedDict[tuple[str, int], tuple[bytes, Bucket]] = OrderedDict()


def process(
    work: StreamWork,
    query: str,
    number: int,
    store: BucketStore,
    blobs: Sequence[bytes],
    watermark: int,
    complete: int,
    *,
    expired: bool = False,
) -> Step:
    """Take packed events into a bucket, recognise those before ``complete`` (microseconds), and keep the rest.

    Events before the watermark are late. ``complete`` is the next watermark as far as it is known by now: no later
    event is before it. ``query`` is the fingerprint of the work, and ``expired`` says that the timer has gone off.
    Raises `SnapshotError` if the store holds the state of another query or version.
    """
    head = store.head()
    if head is not None:
        _check(head, query)
    bucket, held = _recalled(work, query, number, store, head)
    if head is not None:
        # Where a stream has watermarks of its own, Spark's may be behind.
        watermark = max(watermark, head.watermark)
    complete = max(watermark, complete)
    added, late = bucket.add(blobs, watermark)
    matches, released = bucket.release(complete)
    timer = bucket.timer
    before = None if head is None or expired else head.timer
    if timer != before:
        store.set_timer(before, timer)
    snapshot, log = _kept(bucket, store, head, added)
    nonce = os.urandom(8)
    store.set_head(StateHead(_FORMAT, query, nonce, snapshot, log, complete, timer))
    _held[query, number] = (nonce, bucket)
    if len(_held) > limits.STREAM_BUCKETS_HELD:
        _held.popitem(last=False)
    events = late.num_rows + (0 if added is None else added.num_rows)
    return Step(matches, late, events, released, bucket, snapshot + log, held)


def _check(head: StateHead, query: str) -> None:
    if head.format != _FORMAT:
        raise SnapshotError(
            f"the state in the checkpoint has version {head.format}, this cerflow reads version {_FORMAT}: {_WAY_OUT}"
        )
    if head.query != query:
        raise SnapshotError(
            "the state in the checkpoint is of another query or other columns: a changed query needs a new checkpoint"
        )


def _recalled(
    work: StreamWork, query: str, number: int, store: BucketStore, head: StateHead | None
) -> tuple[Bucket, bool]:
    """The bucket as the store has it, and whether it was in memory."""
    # It is put back when its change is in the store: otherwise it is of no use.
    nonce, bucket = _held.pop((query, number), (b"", None))
    if head is None:
        return Bucket(work), False
    if bucket is not None and nonce == head.nonce:
        return bucket, True
    try:
        bucket = Bucket(work, b"".join(store.chunks()) if head.snapshot else None)
    except SnapshotError as error:
        raise SnapshotError(f"cannot read the state in the checkpoint ({error}): {_WAY_OUT}") from error
    if head.log:
        bucket.add(list(store.log()), _ALL)
    # These detections were reported when the events came.
    bucket.release(head.watermark)
    return bucket, False


#: No event is before this watermark: those of a log were not late when they came.
_ALL = -(2**63)


def _kept(bucket: Bucket, store: BucketStore, head: StateHead | None, added: pa.RecordBatch | None) -> tuple[int, int]:
    """Write to the store that events were added to a bucket; gives the sizes of its snapshot and its log."""
    snapshot, log = (0, 0) if head is None else (head.snapshot, head.log)
    if added is None:
        return snapshot, log
    blob = packed_rows(added)
    log += len(blob) + _ENTRY_BYTES
    if log <= max(limits.STREAM_LOG_RATIO * snapshot, limits.STREAM_LOG_BYTES):
        store.append(blob)
        return snapshot, log
    data = bucket.snapshot()
    step = limits.STREAM_CHUNK_BYTES
    store.replace([data[at : at + step] for at in range(0, len(data), step)])
    return len(data), 0
