"""The moments of detections that an event of their own partition does not cause: passed deadlines (spec §10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from cerflow.values.array_types import Ints, Mask

#: Detections at moment number k have the position -2 - k.
_FIRST = -2


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

    #: The position of detections at the first moment.
    first: ClassVar[int] = _FIRST

    @classmethod
    def of_one(cls, place: int, time: pa.Array, member: int) -> Moments:
        """A single moment, with the position and time of the event that shows it, and a member."""
        return cls(pa.array([place], pa.int64()), time, np.array([member]), np.zeros(1, np.int64))

    @property
    def positions(self) -> Ints:
        """The positions of detections at these moments."""
        return _FIRST - np.arange(len(self.members))

    @staticmethod
    def among(positions: Ints) -> Mask:
        """Marks the detections that are at such a moment."""
        return positions <= _FIRST

    @staticmethod
    def numbers(positions: Ints) -> Ints:
        """The numbers of the moments of some detections."""
        return _FIRST - positions
