"""The folder ``cerflow`` in the checkpoint of a streaming query, next to Spark's own files.

``query.json`` describes the query, ``status.json`` and ``metrics.prom`` (for Prometheus) say how far it has come, the
files in ``clock`` hold times up to which the stream is known to be complete, and ``times.json`` has the longest delay
so far (milliseconds) and the watermark of the last flush (an instant).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from cerflow.base.errors import InputError
from cerflow.spark.streaming.buckets import shown_instant, watermark_at

QUERY, STATUS, METRICS, TIMES = "query.json", "status.json", "metrics.prom", "times.json"
_ANEW = "use a new checkpoint, which reads all events that the source still has"
#: What to do about a damaged file.
_REMEDIES = {
    QUERY: "if query, columns and buckets are those of before, remove it, and it is written again",
    STATUS: "remove it; counts start again, and matches are not affected",
    TIMES: "remove it, and start with the longest delay that the stream has had",
    "input.json": "remove it, and name the columns with --columns",
}
#: A file of a state store, with the number of a version.
_VERSION = re.compile(r"(\d+)(?:_[^.]*)?\.(?:zip|changelog)$")


@dataclass(frozen=True)
class StreamStatus:
    """The progress of a streaming query.

    ``batch`` is the last micro-batch that was written, ``at`` the time of that, and ``watermark`` the time before which
    events are late (None before the first event). ``totals`` counts events, late ones, bad ones, released ones and
    matches since the checkpoint began, ``last`` those of the last micro-batch, and the buckets with events in it and
    those that were in memory (``held``). ``remembered`` sums up waiting events, configurations, nodes, keys and bytes
    of state over all buckets. ``lacking`` counts the events without a value in columns that the query reads of events
    of their types.
    """

    batch: int
    at: str
    watermark: str | None
    totals: Mapping[str, int]
    last: Mapping[str, int]
    remembered: Mapping[str, int]
    lacking: Mapping[str, int] = field(default_factory=dict)


class Checkpoint:
    """The folder of a checkpoint on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self._java: Any = spark._jvm
        self.path = path
        self._settings = spark._jsc.hadoopConfiguration()
        self._files = self._path("").getFileSystem(self._settings)

    def _path(self, name: str) -> Any:
        """A file or folder in the checkpoint; those that are not Spark's are in ``cerflow``."""
        return self._java.org.apache.hadoop.fs.Path(f"{self.path.rstrip('/')}/{name}")

    def read(self, name: str) -> dict[str, Any] | None:
        """The contents of a file of JSON; None if it is not there."""
        path = self._path(f"cerflow/{name}")
        if not self._files.exists(path):
            return None
        try:
            found: dict[str, Any] = json.loads(self._text(path))
        except ValueError as error:
            raise InputError(f"'{path.toString()}' is damaged ({error}): {_REMEDIES.get(name, _ANEW)}") from error
        return found

    def _text(self, path: Any) -> str:
        with closing(self._files.open(path)) as opened:
            return str(self._java.org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))

    def write(self, name: str, contents: dict[str, Any]) -> None:
        """Write a file of JSON; readers see it as a whole or not at all."""
        self.write_text(name, json.dumps(contents, indent=2, ensure_ascii=False))

    def write_text(self, name: str, text: str) -> None:
        """Write a file as `write` does."""
        path, unfinished = (self._path(f"cerflow/{n}") for n in (name, f".unfinished-{name.replace('/', '-')}"))
        self._files.mkdirs(path.getParent())
        with closing(self._files.create(unfinished, True)) as opened:
            opened.write(bytearray(text.encode()))
        # This interface of Hadoop can replace a file by renaming another; that of `_files` cannot.
        context = self._java.org.apache.hadoop.fs.FileContext.getFileContext(self._files.getUri(), self._settings)
        how = self.spark.sparkContext._gateway.new_array(self._java.org.apache.hadoop.fs.Options.Rename, 1)  # type: ignore[union-attr]
        how[0] = self._java.org.apache.hadoop.fs.Options.Rename.OVERWRITE
        context.rename(self._files.makeQualified(unfinished), self._files.makeQualified(path), how)

    @property
    def clock(self) -> DataFrame:
        """The times in the folder ``clock`` as a stream, which removes them when they are no longer needed."""
        folder = self._path("cerflow/clock")
        self._files.mkdirs(folder)
        reader = self.spark.readStream.schema("instant bigint").option("multiLine", True)
        # After a checkpoint was set back, times are missing that were removed.
        return reader.option("cleanSource", "delete").option("ignoreMissingFiles", True).json(folder.toString())

    def tick(self, instant: int) -> None:
        """Let the stream know that it is complete up to an instant (microseconds), at the delay after it."""
        self.write(f"clock/{instant}.json", {"instant": instant})

    def watermark(self) -> int:
        """The instant of the watermark after the last micro-batch; `BEGINNING` before the first."""
        # A stream may end between the end of a micro-batch and the plan of the next one, or amid a micro-batch.
        logs = (("offsets", "batchWatermarkMs"), ("commits", "nextBatchWatermarkMs"))
        found = [self._noted(log, max(batches), name) for log, name in logs if (batches := self.batches(log))]
        return watermark_at(max(found, default=0))

    def batches(self, log: str) -> set[int]:
        """The numbers of the micro-batches in one of Spark's logs, ``offsets`` or ``commits``."""
        return {int(path.getName()) for path in self._listed(log) if path.getName().isdigit()}

    def _listed(self, folder: str) -> list[Any]:
        path = self._path(folder)
        return [status.getPath() for status in self._files.listStatus(path)] if self._files.exists(path) else []

    def _noted(self, log: str, batch: int, name: str) -> int:
        # The second line is Spark's description of the batch.
        _, described, *_ = self._text(self._path(f"{log}/{batch}")).splitlines()
        return int(json.loads(described)[name])

    def check_readable(self) -> None:
        """Raise `InputError` if a running query uses the checkpoint, or files of Spark in it are lost."""
        metadata = self._path("metadata")
        if self._files.exists(metadata):
            running = self.spark.streams.get(json.loads(self._text(metadata))["id"])
            if running is not None and running.isActive:
                raise InputError(f"a running query uses the checkpoint '{self.path}': stop it first, or use another")
        planned, written = self.batches("offsets"), self.batches("commits")
        # Spark would refuse the unfinished file of a start that broke off while it planned the first micro-batch.
        for unfinished in [] if planned else self._listed("offsets"):
            self._files.delete(unfinished, False)
        last = max(planned, default=-1)
        lost = [f"offsets/{k}" for k in sorted({*written, last - 1, last} - planned) if k >= max(last - 1, 0)]
        if planned and not self._listed("sources"):
            lost.append("sources")
        if lost:
            raise InputError(
                f"the checkpoint '{self.path}' lacks {', '.join(lost)}: restore it from a copy as a whole, or take a "
                "new checkpoint; the events that the source still has pass again then"
            )

    def set_back(self, latest: int, batch: int | None = None) -> int:
        """Forget the micro-batches from the first one whose events took the watermark beyond an instant.

        They are done again at the next start, from the state before them; ``batch`` names the first one instead.
        Returns its number. Raises `InputError` if there is none, or its state is no longer kept.
        """
        planned = sorted(self.batches("offsets"))
        if batch is None:
            # The watermark of the next micro-batch shows what this one has read.
            watermarks = {k: watermark_at(self._noted("offsets", k, "batchWatermarkMs")) for k in planned}
            batch = next((k - 1 for k in planned if watermarks[k] > latest), None)
            if batch is None:
                raise InputError(
                    f"no watermark in the checkpoint '{self.path}' is later than {shown_instant(latest)}; name the "
                    f"micro-batch to begin with, {planned[0] if planned else 0} or a later one, to reset it"
                )
        if batch not in planned or (batch and batch - 1 not in self.batches("commits")):
            rest = f", which begins with micro-batch {planned[0]}" if planned else ""
            raise InputError(
                f"micro-batch {batch} is no longer in the checkpoint '{self.path}'{rest}: take a new checkpoint; "
                "the events that the source still has pass again then"
            )
        versions = self._versions()
        if batch and any(number > batch for number, _ in versions) and not any(0 < n <= batch for n, _ in versions):
            raise InputError(f"the state before micro-batch {batch} is not in '{self.path}' any longer: {_ANEW}")
        self._forget(f"cerflow/{STATUS}")
        for folder, first in (("commits", batch), ("offsets", batch + 1)):
            for number in sorted(self.batches(folder), reverse=True):
                if number >= first:
                    self._forget(f"{folder}/{number}")
        for version, name in versions:
            if version > batch:
                self._forget(name)
        return batch

    def _versions(self) -> list[tuple[int, str]]:
        """The files of the state, each with the number of the micro-batch before which it is read."""
        found = []
        stores = [f"state/{store.getName()}" for store in self._listed("state")]
        for partition in [f"{store}/{path.getName()}" for store in stores for path in self._listed(store)]:
            for path in self._listed(partition):
                match = _VERSION.match(path.getName())
                if match is not None:
                    found.append((int(match[1]), f"{partition}/{path.getName()}"))
        return found

    def _forget(self, name: str) -> None:
        self._files.delete(self._path(name), False)


def check_unchanged(checkpoint: Checkpoint, description: dict[str, Any]) -> None:
    """Note the description of a query in a checkpoint, or compare it with the one there; raises `InputError`."""
    written = checkpoint.read(QUERY)
    if written is None:
        checkpoint.write(QUERY, description)
        return
    if written == description:
        return
    before, now = (json.dumps(d, indent=1, ensure_ascii=False).splitlines() for d in (written, description))
    difference = "\n".join(difflib.unified_diff(before, now, "checkpoint", "now", lineterm="", n=0))
    raise InputError(
        f"the checkpoint '{checkpoint.path}' is of another query, other columns or other buckets; take a new one, or "
        f"change it back:\n{difference}"
    )


_TOTALS = {
    "events": "Relevant events",
    "late": "Events that came after the delay",
    "bad": "Events that cannot be used",
    "released": "Events that the watermark has passed",
    "matches": "Matches found",
}
_GAUGES = {
    "waiting": "Events that wait for the watermark",
    "configurations": "Configurations that are remembered",
    "nodes": "Nodes of the match graph that are remembered",
    "keys": "Keys that are remembered",
    "state_bytes": "Bytes in the state store",
    "batch": "Last micro-batch that was written",
    "batch_seconds": "When the last micro-batch was written, in seconds since 1970",
    "watermark_seconds": "Time before which events are late, in seconds since 1970",
    "watermark_lag_seconds": "How far the watermark was behind the clock when the micro-batch was written",
    "buckets": "Buckets that got events in the last micro-batch",
    "buckets_held": "How many of these buckets were in memory",
}


def prometheus_text(status: StreamStatus, checkpoint: str) -> str:
    """A status in the text format of Prometheus, with the checkpoint as a label."""
    at = datetime.fromisoformat(status.at).timestamp()
    gauges: dict[str, float] = {
        **status.remembered,
        "batch": status.batch,
        "batch_seconds": at,
        "buckets": status.last["buckets"],
        "buckets_held": status.last["held"],
    }
    if status.watermark is not None:
        watermark = np.datetime64(status.watermark.rstrip("Z"), "us").astype(int) / 1e6
        gauges |= {"watermark_seconds": watermark, "watermark_lag_seconds": at - watermark}
    label = checkpoint.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = []
    for kind, suffix, described, values in (
        ("counter", "_total", _TOTALS, status.totals),
        ("gauge", "", _GAUGES, gauges),
    ):
        for name, help_ in described.items():
            if name not in values:
                continue
            full = f"cerflow_stream_{name}{suffix}"
            lines += [f"# HELP {full} {help_}", f"# TYPE {full} {kind}"]
            lines.append(f'{full}{{checkpoint="{label}"}} {values[name]}')
    return "\n".join([*lines, ""])
