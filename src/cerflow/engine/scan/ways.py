"""The alternatives that make an event relevant, as bits of a byte, so that columns are compared before events are read.

A way is a conjunction: some tests hold, some do not. Texts decide most tests, so each text leaves some ways open, and
the ways of an event are those that all its texts leave open. An event without any is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from cerflow.engine.scan import layout
from cerflow.engine.tables.transducer_tables import TransducerTables

#: The tests that hold, and those that do not.
Way = tuple[frozenset[int], frozenset[int]]
_ByTest = dict[int | None, list[tuple[frozenset[int], frozenset[int], int]]]
#: The byte of an event to which every way is open.
ALL = (1 << layout.WAYS) - 1


@dataclass(frozen=True)
class Ways:
    """The ways in which events are relevant, each with a bit, which several may share if there are many.

    ``narrows`` says whether they are asked for before anything else, as texts or comparisons with constants rule out
    each, ``decides`` whether texts decide all, so that the ways say what an event does.
    """

    ways: Sequence[Way]
    bits: Sequence[int]
    narrows: bool
    decides: bool
    _indexed: dict[frozenset[int], _ByTest] = field(default_factory=dict, compare=False, repr=False)

    @property
    def apart(self) -> bool:
        """Whether each way has a bit of its own."""
        return len(self.ways) <= layout.WAYS

    def ending(self) -> int:
        """The bits of the ways that end the waiting of runs."""
        found = 0
        for (held, _), bit in zip(self.ways, self.bits):
            if not held:
                found |= bit
        return found

    def left_by(self, decided: frozenset[int], satisfied: frozenset[int]) -> int:
        """The bits of the ways that are open where of the decided tests just these are satisfied."""
        if decided not in self._indexed:
            self._indexed[decided] = self._by_test(decided)
        return _open(self._indexed[decided], satisfied)

    def _by_test(self, decided: frozenset[int]) -> _ByTest:
        """Of each way the decided tests and its bit, by one test that must hold (None: none must)."""
        index: _ByTest = {}
        for (held, not_held), bit in zip(self.ways, self.bits):
            needed = held & decided
            index.setdefault(min(needed, default=None), []).append((needed, not_held & decided, bit))
        return index

    def decided(self, tests: Iterable[int]) -> list[list[int]]:
        """Rows of `ScanArrays.decided`: the ways that some tests leave open where they hold, and where they do not."""
        rows = []
        for test in tests:
            own = frozenset({test})
            # There may be many tests, so what is found of each is not kept.
            index = self._by_test(own)
            rows.append([test, _open(index, own), _open(index, frozenset())])
        return [row for row in rows if row[1] & row[2] != ALL]

    def needing(self, tests: Iterable[frozenset[int]]) -> int:
        """The bits of the ways that need some tests to hold, and no others."""
        wanted = set(tests)
        found = 0
        for (held, failed), bit in zip(self.ways, self.bits):
            if held in wanted and not failed:
                found |= bit
        return found


def _open(by_test: _ByTest, satisfied: frozenset[int]) -> int:
    found = 0
    for test in (None, *satisfied):
        for held, not_held, bit in by_test.get(test, ()):
            if held <= satisfied and not_held.isdisjoint(satisfied):
                found |= bit
    return found


def relevant_ways(tables: TransducerTables, by_text: frozenset[int], compared: frozenset[int]) -> Ways | None:
    """The ways in which events are relevant; None if all are. An event to which no way is open is not relevant, unless
    the events of each key are counted.

    ``by_text`` are the tests that texts decide, and ``compared`` those that compare a column with a constant.
    """
    moves = tables.moves
    by_block = by_text | compared
    found: dict[Way, None] = dict.fromkeys((needs, frozenset[int]()) for needs in moves.needs)
    if tables.counted:
        return Ways(list(found), _bits(tables, list(found)), narrows=False, decides=False)
    for loops in moves.waiting:
        if frozenset() not in loops:
            # Of each loop some test fails. Where that may be one of many, nothing is said.
            many = prod(map(len, loops)) > layout.WAYS
            for failed in product(*(() if many else loops)):
                found[frozenset(), frozenset(failed)] = None
    ruled_out = (not held.isdisjoint(by_block) or not failed.isdisjoint(by_block) for held, failed in found)
    alone = not any(len(needs) > 1 for loops in moves.waiting if frozenset() not in loops for needs in loops)
    decides = alone and len(found) <= layout.WAYS and all(held | failed <= by_text for held, failed in found)
    return Ways(list(found), _bits(tables, list(found)), all(ruled_out), decides)


def _bits(tables: TransducerTables, ways: Sequence[Way]) -> list[int]:
    """The bits of some ways; of many, those of the last event of a match have one that no other way shares."""
    if len(ways) <= layout.WAYS:
        return [1 << k for k in range(len(ways))]
    moves = tables.moves
    last = {(needs, frozenset[int]()) for move, needs in zip(moves.rows, moves.needs) if move.final}
    shared = layout.WAYS - 1
    return [1 << (shared if way in last else k % shared) for k, way in enumerate(ways)]
