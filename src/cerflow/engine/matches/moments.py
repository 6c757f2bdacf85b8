"""The moments of detections that an event of their own partition does not cause: passed deadlines (spec §10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import IntRows, Ints, Mask


@dataclass(frozen=True)
class Moments:
    """Moments by number: the reported position of the event that showed each (null: the clock did), and the time.

    ``members`` has the position of a stored event of each moment's partition. ``together`` numbers what is read
    (events, ticks, pauses), with one number for all whose detections are known at once.
    """

    places: pa.Array  # int64
    times: pa.Array  # of the type of the time column
    members: Ints
    together: Ints

    #: The position of detections at the first moment; those at moment number k have this position minus k.
    first: ClassVar[int] = -2

    @classmethod
    def of_one(cls, place: int, time: pa.Array, member: int) -> Moments:
        """A single moment, with the position and time of the event that shows it, and a member."""
        return cls(pa.array([place], pa.int64()), time, np.array([member]), np.zeros(1, np.int64))

    @property
    def positions(self) -> Ints:
        """The positions of detections at these moments."""
        return Moments.first - np.arange(len(self.members))

    @staticmethod
    def among(positions: Ints) -> Mask:
        """Marks the detections that are at such a moment."""
        return positions <= Moments.first

    @staticmethod
    def numbers(positions: Ints) -> Ints:
        """The numbers of the moments of some detections."""
        return Moments.first - positions


def in_turn(rows: Ints, keys: IntRows, begun: Ints, *less: Ints) -> Ints:
    """The order of deadlines by the rows that show them, then by keys as their last ones ``begun``, then by the rest.

    ``keys`` has the words of each key, ``begun`` the position where each deadline begins. If the deadline of any match
    is among those of a row and key, so is that of the last one.
    """
    order = np.arange(len(rows))
    if (rows[1:] < rows[:-1]).any():
        some = order
    else:
        # Deadlines come in the order of time, so there is little to sort.
        tied = rows[1:] == rows[:-1]
        some = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    if not len(some):
        return order
    columns = [rows[some], *keys[some].T]
    grouped = np.lexsort((begun[some], *columns[::-1]))
    differs = np.logical_or.reduce([np.diff(column[grouped]) != 0 for column in columns])
    ends = np.append(np.flatnonzero(differs), len(some) - 1)
    turns = np.empty(len(some), np.int64)
    turns[grouped] = np.repeat(begun[some][grouped[ends]], np.diff(ends, prepend=-1))
    order[some] = some[np.lexsort((*(key[some] for key in less[::-1]), turns, rows[some]))]
    return order
