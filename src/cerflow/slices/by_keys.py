"""Where to cut a stream whose events have keys, and which events each slice needs from before its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cerflow.slices.lookback import Lookback
from cerflow.slices.pieces import Pieces
from cerflow.slices.slice import GREATEST, LEAST, Slice


def slices_by_key(starts: Sequence[int], lookback: Lookback, least: int, greatest: int) -> list[Slice[int]]:
    """The slices of a whole stream, whose keys lie in ``[least, greatest]``, that begin at these keys (ascending).

    The first one always begins with the stream.
    """
    inner = [start for start in dict.fromkeys(starts) if least < start <= greatest]
    begins = [LEAST, *(_clipped(min(lookback.begin(start), start), least) for start in inner)]
    return [
        _slice(begin, start, stop, lookback)
        for begin, start, stop in zip(begins, [LEAST, *inner], [*inner, GREATEST], strict=True)
    ]


def boundaries(pieces: Pieces, lookback: Lookback) -> list[Slice[int]]:
    """The slices around the cuts between partitions, in the order of time and apart from each other.

    Partitions are taken in the order of their least keys, whatever their numbers: Spark arranges files by their size.
    Detections outside of the slices depend only on events of their own partition: earlier partitions lie further back
    than the window, and later partitions come after the detection.
    """
    parts, at = np.unique(pieces.part, return_inverse=True)
    low, high = np.full(len(parts), GREATEST), np.full(len(parts), LEAST)
    np.minimum.at(low, at, pieces.low)
    np.maximum.at(high, at, pieces.high)
    rank = np.argsort(low, kind="stable")
    after, before = low[rank], np.maximum.accumulate(high[rank])
    least, greatest = int(after[0]), int(before[-1])
    found: list[Slice[int]] = []
    for k in range(len(parts) - 1):
        start, stop = int(after[k + 1]), lookback.edge(int(before[k]))
        stop = GREATEST if stop > greatest else stop
        if start >= stop:
            continue
        if found and start <= found[-1].stop:
            found[-1] = replace(found[-1], stop=max(found[-1].stop, stop))
        else:
            begin = _clipped(min(lookback.begin(start), start), least)
            found.append(_slice(begin, start, stop, lookback))
    return found


def _slice(begin: int, start: int, stop: int, lookback: Lookback) -> Slice[int]:
    return Slice(begin, start, stop, found=None if begin == LEAST else lookback.found_before(start))


def _clipped(begin: int, least: int) -> int:
    return LEAST if begin <= least else begin
