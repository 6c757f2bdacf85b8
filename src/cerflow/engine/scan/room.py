"""The arrays of one scan, which its kernels see by one address, and the room in them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.layout import EventArrays
from cerflow.engine.scan import layout
from cerflow.engine.scan.layout import ScanArrays
from cerflow.engine.scan.texts import TextEntries

#: There may be this many entries of keys, even if there are fewer rows.
ENTRIES = 1 << 12
#: Events that there is room for at first.
_EVENTS = 1 << 10
#: Keys that a large batch has room for at first, and times as much if that was too little.
_KEYS, _MORE_KEYS = 1 << 17, 8

#: Codes that are written one by one, which takes less time than by columns.
_FEW = 4

#: Rooms of recognisers that are gone, by name of array: new memory costs as much as a pass over it.
_spare: list[dict[str, NDArray[Any]]] = []
#: Of how many, and how many bytes each.
_SPARE_ROOMS, _SPARE_BYTES = 2, 1 << 26


def lend_room(user: object) -> dict[str, NDArray[Any]]:
    """Arrays by name, of which nothing outlasts a batch, for the scans of one ``user`` until it is gone."""
    room = _spare.pop() if _spare else {}
    weakref.finalize(user, _take_back, room).atexit = False
    return room


def _take_back(room: dict[str, NDArray[Any]]) -> None:
    if len(_spare) < _SPARE_ROOMS and sum(array.nbytes for array in room.values()) <= _SPARE_BYTES:
        _spare.append(room)


class ScanRoom:
    """The ``arrays`` of a scan, those of the ``events`` that it finds, and the entries of its columns of ``texts``.

    ``events_for`` makes arrays for a number of events. Most ``arrays`` are those of a room ``like`` this, if given.
    """

    def __init__(
        self,
        arrays: ScanArrays,
        texts: Sequence[TextEntries],
        events_for: Callable[[int], EventArrays],
        like: ScanRoom | None = None,
    ) -> None:
        self.arrays = arrays
        self.texts = texts
        self.events = events_for(_EVENTS)
        self._events_for = events_for
        self.shared: SharedArrays = SharedArrays(None if like is None else like.shared)
        self.shared.hold(self.events)
        self.shared.hold(arrays)
        control: Any = arrays.control
        self.control = memoryview(control)
        #: Arrays by name, which other scans of the same recogniser may use before and after.
        self.lent: dict[str, NDArray[Any]] = {}
        #: Whether texts were too many to have numbers.
        self.unfound = False

    def hold(self, **arrays: Any) -> None:
        """Replace some arrays."""
        self.arrays = self.shared.replace(self.arrays, **arrays)

    def use(self, **shapes: tuple[int, ...]) -> None:
        """Give arrays of which nothing outlasts a batch these shapes, in room that the scans of a recogniser share."""
        used = {}
        for name, shape in shapes.items():
            size, now = prod(shape), getattr(self.arrays, name)
            room = self.lent.get(name)
            if room is None or len(room) < size:
                room = self.lent[name] = np.empty(size, now.dtype)
            used[name] = room[:size].reshape(shape)
        if used:
            self.hold(**used)

    def make_room(self, events: int) -> None:
        """Make room for this many events; those found so far stay."""
        old, count = self.events, self.control[layout.COUNT]
        if events > len(old.signature):
            self.events = self._events_for(1 << (events - 1).bit_length())
            for name in EventArrays._fields[:-1]:  # the last are not by event
                array = getattr(self.events, name)
                if array.flags.writeable:
                    array[:count] = getattr(old, name)[:count]
            self.events = self.events._replace(ranks=old.ranks)
            self.shared.hold(self.events)

    def room_for_rows(self, count: int, *names: str) -> None:
        """Make room in the arrays of these ``names`` for as many rows; of guards the kernels read 64 at a time."""
        most = (64 + max(layout.BLOCK, 1 << (count - 1).bit_length()),)
        self.use(**{name: most for name in names if max(count, layout.BLOCK) + 64 > len(getattr(self.arrays, name))})

    def room_for_candidates(self, count: int) -> None:
        """Make room for this many candidates."""
        if count > len(self.arrays.candidates):
            self.use(candidates=(1 << (count - 1).bit_length(), layout.CANDIDATE_WORDS))

    def begin_groups(self, most: int, key: int) -> None:
        """Forget all keys that have numbers, with room for this many, or for all entries of a ``key`` that is text."""
        arrays = self.arrays
        if key >= 0:
            most = int(arrays.texts[key, layout.T_ROOM]) - 1
        elif key == layout.NO_KEYS:
            most = 1
        if key == layout.HASHED_KEYS and most > len(arrays.members):
            room = 1 << most.bit_length()
            self.use(members=(room, arrays.members.shape[1]), slots=(2 * room,))
            most = room - 1
        if most >= len(arrays.groups):
            self.use(groups=(most + 1, layout.GROUP_WORDS))
        self.control[layout.GROUPS] = 0
        self.arrays.slots.fill(0)

    def with_keys(self, read: Callable[[], Any], key: int, texts: frozenset[int], batch: pa.RecordBatch) -> bool:
        """Let a kernel ``read`` a batch by numbers of keys and ``texts``; False if there are too many of them."""
        arrays, control = self.arrays, self.control
        keys = max(len(arrays.members), ENTRIES, min(batch.num_rows >> 3, _KEYS))
        control[layout.ROW] = 0
        while True:
            if control[layout.ROW] == 0:
                self.begin_groups(keys, key)
            reason = read()
            text = control[layout.TEXT]
            if reason == layout.SCANNED:
                return True
            if reason == layout.NO_ROOM and text == layout.HASHED_KEYS:
                keys *= _MORE_KEYS
                continue
            room = arrays.texts[text, [layout.T_ROOM, layout.T_LIMIT]].tolist()
            self.resume(reason, batch)
            if reason == layout.NO_ROOM and text in texts:
                control[layout.ROW] = 0
                self.unfound = room == arrays.texts[text, [layout.T_ROOM, layout.T_LIMIT]].tolist()
                if self.unfound:
                    return False

    def resume(self, reason: int, batch: pa.RecordBatch) -> None:
        """Do what a kernel stopped for."""
        self.learn(batch)
        if reason == layout.NO_ROOM:
            self.texts[self.control[layout.TEXT]].grow()

    def learn(self, batch: pa.RecordBatch) -> None:
        """Read new texts, and give codes to those that events have."""
        try:
            for text in self.texts:
                text.learn(batch)
        except (UnicodeDecodeError, pa.ArrowInvalid):
            # Kernels have entered texts that nobody can read.
            for text in self.texts:
                text.begin_again()
            raise
        count = self.control[layout.FIXES]
        if not count:
            return
        fixes = self.arrays.fixes[:count]
        self.control[layout.FIXES] = 0
        if count <= _FEW:
            for number, entry, place, event in fixes.tolist():
                words, at = (self.events.keys, -1 - place) if place < 0 else (self.events.columns, place)
                words[event, at] = self.texts[number].code(entry)
            return
        for number, text in enumerate(self.texts):
            some = fixes[fixes[:, layout.X_TEXT] == number]
            if not len(some):
                continue
            codes = text.codes(some[:, layout.X_ENTRY])
            places, events = some[:, layout.X_PLACE], some[:, layout.X_EVENT]
            keyed = places < 0
            if keyed.any():
                self.events.keys[events[keyed], -1 - places[keyed]] = codes[keyed]
            if not keyed.all():
                self.events.columns[events[~keyed], places[~keyed]] = codes[~keyed]
