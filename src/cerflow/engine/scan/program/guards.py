"""The alternatives that make an event relevant, as bits of a byte, so that columns are compared before events are read.

A guard is a conjunction: some tests hold, some do not. Texts decide most tests, so each text leaves some guards
possible, and the guards of an event are those that all its texts leave possible. An event without any is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, product
from math import prod
from operator import or_

from cerflow.engine.scan import layout
from cerflow.engine.tables.transducer_tables import TransducerTables

#: The tests that hold, and those that do not.
Guard = tuple[frozenset[int], frozenset[int]]
_ByTest = dict[int | None, list[tuple[frozenset[int], frozenset[int], int]]]
#: The byte of an event for which every guard may hold.
ALL = (1 << layout.GUARDS) - 1


@dataclass(frozen=True)
class Guards:
    """The guards of relevant events, each with a bit, which several may share if there are many.

    ``narrows`` says whether they are asked for before anything else, as texts or comparisons with constants rule out
    each, ``tells`` whether those that hold say what an event does, and ``decides`` whether texts decide all, too.
    """

    guards: Sequence[Guard]
    bits: Sequence[int]
    narrows: bool
    tells: bool = False
    decides: bool = False
    _indexed: dict[frozenset[int], _ByTest] = field(default_factory=dict, compare=False, repr=False)

    @property
    def apart(self) -> bool:
        """Whether each guard has a bit of its own."""
        return len(self.guards) <= layout.GUARDS

    def ending(self) -> int:
        """The bits of the guards that end the waiting of runs."""
        return joined_bits(bit for (held, _), bit in zip(self.guards, self.bits) if not held)

    def left_by(self, decided: frozenset[int], satisfied: frozenset[int]) -> int:
        """The bits of the guards that may hold where of the decided tests just these are satisfied."""
        if decided not in self._indexed:
            self._indexed[decided] = self._by_test(decided)
        return _open(self._indexed[decided], satisfied)

    def _by_test(self, decided: frozenset[int]) -> _ByTest:
        """Of each guard the decided tests and its bit, by one test that must hold (None: none must)."""
        index: _ByTest = {}
        for (held, not_held), bit in zip(self.guards, self.bits):
            needed = held & decided
            index.setdefault(min(needed, default=None), []).append((needed, not_held & decided, bit))
        return index

    def decided(self, tests: Mapping[int, Sequence[int]]) -> list[list[int]]:
        """Rows of `ScanArrays.decided`: the guards that a test leaves possible where it holds and where it fails.

        ``tests`` are rows of `ScanArrays.tests`; of equal ones only one is asked.
        """
        rows = dict[tuple[int, ...], list[int]]()
        for test, row in tests.items():
            own = frozenset({test})
            # There may be many tests, so what is found of each is not kept.
            index = self._by_test(own)
            first = rows.setdefault(tuple(row), [test, ALL, ALL])
            first[1:] = first[1] & _open(index, own), first[2] & _open(index, frozenset())
        # Programs take longer, so they are asked of the rows that the others leave.
        whole = sorted(rows.items(), key=lambda item: item[0][layout.K_KIND] == layout.RUN)
        return [row for _, row in whole if row[1] & row[2] != ALL]

    def needing(self, tests: Iterable[frozenset[int]]) -> int:
        """The bits of the guards that need some tests to hold, and no others."""
        wanted = set(tests)
        return joined_bits(bit for (held, failed), bit in zip(self.guards, self.bits) if held in wanted and not failed)

    def failing(self, loops: Iterable[frozenset[int]]) -> int:
        """The bits of the guards that hold where all of some ``loops`` fail."""
        some = [*loops]
        ways = ((failed, bit) for (held, failed), bit in zip(self.guards, self.bits) if not held)
        return joined_bits(bit for failed, bit in ways if all(loop & failed for loop in some))


def joined_bits(bits: Iterable[int]) -> int:
    """All of some bits."""
    return reduce(or_, bits, 0)


def _open(by_test: _ByTest, satisfied: frozenset[int]) -> int:
    some = chain.from_iterable(by_test.get(test, ()) for test in (None, *satisfied))
    return joined_bits(bit for held, failed, bit in some if held <= satisfied and failed.isdisjoint(satisfied))


def are_told(loops: Iterable[frozenset[int]]) -> bool:
    """Whether guards say how all of some ``loops`` fail: there are no more ways than guards."""
    return prod(map(len, loops)) <= layout.GUARDS


def relevant_guards(tables: TransducerTables, by_text: frozenset[int], compared: frozenset[int]) -> Guards | None:
    """The guards of relevant events; None if all are. An event for which no guard may hold is not relevant, unless
    the events of each key are counted.

    ``by_text`` are the tests that texts decide, and ``compared`` those that compare a column with a constant.
    """
    moves = tables.moves
    by_block = by_text | compared
    found: dict[Guard, None] = dict.fromkeys((move.needs, frozenset[int]()) for move in moves.rows)
    for loops in moves.waiting:
        if frozenset() not in loops:
            # Of each loop some test fails. Where that may be one of many, nothing is said.
            for failed in product(*(loops if are_told(loops) else ())):
                found[frozenset(), frozenset(failed)] = None
    if tables.counted:
        return Guards(list(found), _bits(tables, list(found)), narrows=False)
    alone = not any(len(needs) > 1 for loops in moves.waiting if frozenset() not in loops for needs in loops)
    tells = alone and len(found) <= layout.GUARDS
    decides = tells and all(held | failed <= by_text for held, failed in found)
    return Guards(list(found), _bits(tables, list(found)), _ruled_out(found, by_block), tells, decides)


def _ruled_out(guards: Iterable[Guard], by_block: frozenset[int]) -> bool:
    """Whether each of some guards is ruled out by tests that blocks of rows are asked for."""
    return all(not held.isdisjoint(by_block) or not failed.isdisjoint(by_block) for held, failed in guards)


def guards_of_absence(
    opening: Sequence[frozenset[int]], loops: Sequence[frozenset[int]], by_block: frozenset[int]
) -> Guards | None:
    """Guards with a bit each: for each of the ``opening`` tests, then for the ways in which each of ``loops`` fails.

    ``by_block`` are the tests that blocks of rows are asked for. None if there are too many.
    """
    if not are_told(loops):
        return None
    ends = dict.fromkeys((frozenset[int](), frozenset(failed)) for failed in product(*loops))
    guards = [*((needs, frozenset[int]()) for needs in opening), *ends]
    if len(guards) > layout.GUARDS:
        return None
    return Guards(guards, [1 << k for k in range(len(guards))], _ruled_out(guards, by_block))


def _bits(tables: TransducerTables, guards: Sequence[Guard]) -> list[int]:
    """The bits of some guards; of many, those of the last event of a match have one that no other guard shares."""
    if len(guards) <= layout.GUARDS:
        return [1 << k for k in range(len(guards))]
    last = {(move.needs, frozenset[int]()) for move in tables.moves.rows if move.final}
    shared = layout.GUARDS - 1
    return [1 << (shared if guard in last else k % shared) for k, guard in enumerate(guards)]
