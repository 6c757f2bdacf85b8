"""Passes over whole batches: they find matches of consecutive rows, and leave out rows that no match needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import SmallRows
from cerflow.engine.kernels.table import find_rows, flow, flow_by_key, join_events, number_events
from cerflow.engine.layout import EVERYTHING
from cerflow.engine.matches.graph import CountedMatches, EventsInTurn, consecutive_events
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.program.contiguous import Contiguity
from cerflow.engine.scan.program.flow import ByKey, Flow
from cerflow.engine.scan.program.joins import Joinable
from cerflow.engine.scan.room import ENTRIES, ScanRoom

#: Bytes of `ScanArrays.hits` that are copied at most.
_COPIED = 1 << 12
#: Narrowing pays if it keeps one row in `_FEW` or fewer, or if it rules out the share `_LOST` of the relevant rows and
#: twice `limits.NARROWED_ROWS` more. By key a smaller share pays, as the automaton takes longer for an event.
_FEW, _LOST, _LOST_BY_KEY = 32, 0.65, 1 / 6
#: Rows in the middle of a large batch that tell whether it pays for all, where windows have at most a quarter of them.
_TRIED, _LARGE = 1 << 14, 1 << 16
#: The most events to look at for each event where only keys join two, or more, whose combinations the automaton shares;
#: where conditions do, before the passes, which may decide these; and after these, when the automaton would do it.
_LOOKED_AT, _LOOKED_AT_SHARED, _LOOKED_AT_BEFORE, _LOOKED_AT_LEFT = 16, 2, 4, 256
#: Where it does not pay for a batch, it is not tried for batches of up to four times as many rows, for a while.
_ALIKE = 4


class Narrowing:
    """Learns whether it pays to rule out rows before the automaton reads them; ``by_key`` that keys do that."""

    def __init__(self, *, by_key: bool) -> None:
        self._by_key = by_key
        #: How many further batches are read whole, and the most rows of these.
        self._whole, self._alike = 0, 0
        #: How many batches there are from one attempt to the next, if that does not pay.
        self._pause = limits.NARROWING_PAUSE
        #: Whether the middle of a batch has told that.
        self._tried = False

    def pays(self, rows: int) -> bool:
        """Whether rows of a batch of this size are ruled out."""
        return rows >= limits.NARROWED_ROWS and not (self._whole and rows <= self._alike)

    def count(self, *, rows: int) -> None:
        """Count a batch of this size, before it is read."""
        self._whole = max(0, self._whole - (rows >= limits.NARROWED_ROWS))

    def looked_ahead(self, rows: int, through: Flow, relevant: int, kept: int) -> None:
        """Learn from a pass that `follow_runs` made over this many rows, unless it rests by itself where it is vain."""
        if rows < _LARGE or not through.rests:
            self.learn(rows, relevant, kept)

    def learn(self, rows: int, relevant: int, kept: int) -> None:
        """Have the next batches read whole if narrowing one of this size kept most ``relevant`` rows."""
        least = relevant * (_LOST_BY_KEY if self._by_key else _LOST) + 2 * limits.NARROWED_ROWS
        if relevant - kept >= least or (not self._by_key and _FEW * kept <= rows):
            self._pause = limits.NARROWING_PAUSE
            return
        self._whole, self._alike = max(0, self._pause - 1), _ALIKE * rows
        self._pause = min(2 * self._pause, 8 * limits.NARROWING_PAUSE)

    def try_out(self, room: ScanRoom, through: Flow, batch: pa.RecordBatch) -> None:
        """Find out once in the middle of a large batch whether it pays for all of it."""
        if through.by_key is None or batch.num_rows < _LARGE or self._tried:
            return
        self._tried = True
        if through.window is None:
            # Rows tell little of the keys of others.
            return
        some, control = batch.slice(batch.num_rows // 2, _TRIED), room.control
        control[layout.LOOKED_AHEAD] = 0
        followed = follow_runs(room, through, ExportedBatch(some), some, -1, ending=False)
        room.learn(some)
        if followed and 4 * control[layout.OVERLAP] < _TRIED:
            times = batch.num_rows // _TRIED
            self.learn(batch.num_rows, times * control[layout.RELEVANT], times * control[layout.KEPT])


def find_consecutive(
    room: ScanRoom, contiguity: Contiguity, exported: ExportedBatch, batch: pa.RecordBatch, *, begun: bool, ending: bool
) -> bool:
    """Look for the matches whose events are all in a batch; False if there are too many different texts.

    Matches may have ``begun`` before it; no event follows if it is ``ending``.
    """
    arrays, control, count = room.arrays, room.control, batch.num_rows
    if room.unfound:
        return False
    if (room.arrays.texts[contiguity.compared, layout.T_LAYOUT] < layout.TEXT32).any():
        return False
    size, keyed = (count + 7) >> 3, contiguity.keyed
    if size > len(arrays.hits) or size > _COPIED:
        room.hold(hits=np.empty(max(size, _COPIED), np.uint8))
    arrays.guards[: layout.CARRIED] = 0
    # These go with the matches.
    if contiguity.told_apart:
        room.hold(kinds=np.empty(count, np.uint8))
    if keyed:
        room.hold(before=np.full(count, -1, np.int32))
        room.room_for_rows(count, "guards", "slot_of")
    if contiguity.sorting:
        guards = count + 2 * layout.CARRIED
        room.use(key_of=(count,), order=(count,), sorted=(len(contiguity.sorting), count), sorted_guards=(guards,))
    room.use(computed=(len(arrays.computing), count if len(arrays.computing) else 0))
    control[layout.FOUND] = 0

    def find() -> Any:
        if keyed and len(room.arrays.key_steps) != len(room.arrays.groups):
            room.use(key_steps=(len(room.arrays.groups),))
        return find_rows(room.shared.address, exported.address, count, contiguity.key, begun, ending)

    return room.with_keys(find, contiguity.key, contiguity.texts if keyed else frozenset(), batch)


def matches_found(room: ScanRoom, contiguity: Contiguity, count: int, first: int) -> CountedMatches | None:
    """The matches that `find_consecutive` has found among ``count`` rows from position ``first`` on."""
    arrays, size = room.arrays, (count + 7) >> 3
    # Many bytes are not copied but given away.
    hits = arrays.hits[:size] if size > _COPIED else arrays.hits[:size].copy()
    before = arrays.before if contiguity.keyed else None
    kinds = arrays.kinds if contiguity.told_apart else None
    make = partial(consecutive_events, first, hits, contiguity.labels, kinds, before)
    found = room.control[layout.FOUND]
    return CountedMatches(found, make, single=True) if found else None


def follow_runs(
    room: ScanRoom, through: Flow, exported: ExportedBatch, batch: pa.RecordBatch, occupied: int, *, ending: bool
) -> bool:
    """Rule out the rows of a batch that no run can pass through to the end of a match; False for too many keys.

    ``occupied`` are the states in which runs may be before it, as bits; no event follows if it is ``ending``.
    """
    control, count, by_key = room.control, int(batch.num_rows), through.by_key
    room.room_for_rows(count, "guards", "useful", *(["slot_of"] if by_key is not None else []))
    # Too many states for bits are not followed forwards.
    followed = through.leads.states if through.forwards else ()
    states = sum((occupied >> state & 1) << k for k, state in enumerate(followed))
    if by_key is not None:
        room.use(before=(count,))
        room.arrays.before.fill(-1)

        def choose() -> Any:
            if len(room.arrays.flows) != len(room.arrays.groups):
                room.use(flows=(len(room.arrays.groups), len(room.arrays.cells)))
            return flow_by_key(room.shared.address, exported.address, count, by_key.key, by_key.counted, states, ending)

        return not room.unfound and room.with_keys(choose, by_key.key, by_key.texts, batch)
    _room_for_keys(room, count, keyed=len(through.keyed) > 0)
    rows = 1 << (count - 1).bit_length()
    if through.keyed and rows > len(room.arrays.listed):
        room.use(listed=(rows,), list_measures=(rows,), list_begins=(rows // layout.STRETCH + 2,))
    # Without a window runs go on behind a batch unless the stream ends.
    control[layout.BACKWARDS] = through.backwards or ending
    control[layout.ROW] = count
    while (reason := flow(room.shared.address, exported.address, count, states, ending)) != layout.SCANNED:
        room.resume(reason, batch)
    room.arrays.guards[0] |= through.first
    control[layout.LOOKED_AHEAD], control[layout.MARKS] = 1, layout.DECIDED if through.tell else layout.MARKED
    return True


def _room_for_keys(room: ScanRoom, count: int, *, keyed: bool) -> None:
    """Make room for what is kept by key for a batch of ``count`` rows."""
    rows = 1 << (count - 1).bit_length()
    keys = min(rows, limits.FLOW_KEYS * max(1, rows // limits.FLOW_KEY_ROWS)) if keyed else 1
    if keys != len(room.arrays.flows):
        _use_slots(room, keys)


def _use_slots(room: ScanRoom, slots: int) -> None:
    """Use this many slots for keys, a power of two."""
    room.use(flows=(slots, len(room.arrays.cells)), entered=(2 * ((slots >> 6) + 1),))


def _number_events(room: ScanRoom, by_key: ByKey, exported: ExportedBatch, batch: pa.RecordBatch) -> bool:
    """Number the events of each key in a batch, which begins the stream; False for too many keys."""
    count = int(batch.num_rows)
    room.use(before=(count,), ordinals=(count,))
    number = partial(number_events, room.shared.address, exported.address, count, by_key.key)
    if room.unfound or not room.with_keys(number, by_key.key, by_key.texts, batch):
        return False
    _use_slots(room, 1 << (len(room.arrays.groups) - 1).bit_length())
    return True


class JoinedEvents(NamedTuple):
    """The ``matches`` of a batch (None: there is none), but those in the rows before ``begin`` and from ``end`` on."""

    matches: CountedMatches | None
    begin: int
    end: int


class Joining(Narrowing):
    """Finds the matches of a batch by joining their events, and learns whether that pays."""

    def __init__(self, join: Joinable) -> None:
        super().__init__(by_key=True)
        self._join = join

    @property
    def counts(self) -> bool:
        """Whether it counts events by key, and only joins those of a stream that is a single batch."""
        return self._join.numbers is not None

    @property
    def narrows(self) -> bool:
        """Whether other passes may leave few enough events to join; the automaton shares what longer matches have."""
        return len(self._join.links) > 0 and len(self._join.guards) == 2 and not self.counts

    def join(
        self,
        room: ScanRoom,
        exported: ExportedBatch,
        batch: pa.RecordBatch,
        first: int,
        occupied: int,
        *,
        ending: bool,
        again: bool = False,
    ) -> JoinedEvents | None:
        """The matches in a batch from position ``first`` on; None if the automaton should read all of it.

        ``occupied`` are the states in which runs may be before it, as bits; no event follows if it is ``ending``. Tried
        ``again``, other passes have ruled out rows, and the automaton would look at more events itself.
        """
        join, control, count = self._join, room.control, batch.num_rows
        if count < limits.JOINED_ROWS or not self.pays(count):
            return None
        room.room_for_rows(count, "guards")
        if join.numbers is None:
            _room_for_keys(room, count, keyed=join.keyed)
        elif occupied & join.waiting or not ending or not _number_events(room, join.numbers, exported, batch):
            return None
        control[layout.ROW] = count if control[layout.LOOKED_AHEAD] else 0
        related = len(join.links) > 0
        most = _LOOKED_AT if related or len(join.guards) == 2 else _LOOKED_AT_SHARED
        if related and not self.counts:
            most = _LOOKED_AT_LEFT if again else _LOOKED_AT_BEFORE
        control[layout.WITHIN] = join.within
        # Those of other passes stand for other steps.
        links = room.arrays.links
        if join.numbers is not None:
            room.hold(links=layout.int_rows(join.links, layout.LINK_WORDS))
        asked = occupied & join.waiting != 0, ending, join.choice, most
        while (told := join_events(room.shared.address, exported.address, count, *asked))[0] != layout.SCANNED:
            if told[0] != layout.NO_EVENTS:
                room.resume(told[0], batch)
            elif control[layout.OPENINGS] > len(room.arrays.opened):
                entries = 1 << control[layout.OPENINGS].bit_length()
                room.use(opened=(entries, 2), looked_up=(entries if len(join.handed) else 0,))
                room.use(partials=(max(ENTRIES, entries), 2))
                room.room_for_rows(entries, "slot_of")
            elif len(room.arrays.partials) > max(ENTRIES, count):
                # So many matches take less room in the graph of the automaton, which they share.
                told = layout.SCANNED, -1, -1, 0, 0
                break
            else:
                room.use(partials=(max(ENTRIES, 4 * len(room.arrays.partials)), 2))
        _, begin, end, behind, before = map(int, told)
        control[layout.WITHIN] = 0
        if join.numbers is not None:
            room.hold(links=links)
        if end < 0:
            if again or not self.narrows:
                self.learn(count, count, count)
            return None
        matches, guards = None, room.arrays.guards
        if begin < end:
            rows = _rows_of(room, begin, end, len(join.guards))
            labels = [own[guards[some]] if len(own) > 1 else own[0] for own, some in zip(join.labels, rows)]
            made = partial(_joined, first, rows, labels)
            matches = CountedMatches(end - begin, made, single=join.choice != EVERYTHING)
        guards[behind:before] = 0
        control[layout.MARKS] = layout.MARKED
        return JoinedEvents(matches, behind, before)


def _rows_of(room: ScanRoom, begin: int, end: int, steps: int) -> list[SmallRows]:
    """The rows of each step of the matches ``[begin, end)`` that were joined."""
    partials, opened = room.arrays.partials, room.arrays.slot_of
    some = partials[begin:end]
    rows = [some[:, 0].copy()]
    while len(rows) < steps - 1:
        some = partials[some[:, 1]]
        rows.append(opened[some[:, 0]])
    return [*rows, some[:, 1].copy()]


def _joined(first: int, rows: Sequence[SmallRows], labels: Sequence[Any]) -> EventsInTurn:
    """The matches whose events of each step are ``rows`` of a batch from position ``first`` on."""
    return EventsInTurn([first + some.astype(np.int64) for some in rows], labels)
