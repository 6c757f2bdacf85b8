"""The tests of an event, one after another, until its signature is known.

The answers lead from node to node. Nothing is asked that makes no difference after the answers so far, so most events
leave after the first. Nodes are made when an answer first leads to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import IntRows, Ints
from cerflow.engine.kernels.table import slot_of
from cerflow.engine.scan import layout
from cerflow.engine.tables.transducer_tables import TransducerTables

#: The greatest number of tests that are asked together, which is the number of bits of an outcome.
_TOGETHER = 60
_NOTHING: frozenset[int] = frozenset()
#: The loops of a state, once one of them holds.
_GOES_ON = (_NOTHING,)


class TooManyDecisionsError(Exception):
    """More nodes than can be remembered."""


@dataclass(frozen=True)
class _Knowledge:
    """The knowledge at a node: the tests that hold, the moves and the loops that no failed test rules out."""

    satisfied: frozenset[int]
    moves: tuple[frozenset[int], ...]
    waiting: tuple[tuple[frozenset[int], ...], ...]

    def after(self, held: frozenset[int], failed: frozenset[int]) -> _Knowledge:
        """The knowledge after further answers."""
        satisfied = self.satisfied | held
        moves = tuple(needs for needs in self.moves if needs.isdisjoint(failed))
        waiting = []
        for loops in self.waiting:
            left = tuple(needs for needs in loops if needs.isdisjoint(failed))
            waiting.append(_GOES_ON if any(needs <= satisfied for needs in left) else left)
        return _Knowledge(satisfied, moves, tuple(waiting))

    @property
    def needed(self) -> frozenset[int]:
        """The tests that moves and loops need: those that do not hold yet still make a difference."""
        return _NOTHING.union(*self.moves, *chain.from_iterable(self.waiting))


@dataclass
class _DecisionNode:
    known: _Knowledge
    #: The column of text that is asked, or the tests.
    text: int
    tests: tuple[int, ...]


class Decisions:
    """The nodes for some tables.

    For each column of text, ``text_tests`` are the tests that it decides, and ``text_readers`` those that may only be
    asked once its class is known.

    ``nodes``, ``next``, ``outcomes`` and ``together`` are arrays of `ScanArrays`, replaced as they grow. ``classes``
    gives for each column of text the tests that hold in each class, as far as there are classes.
    """

    def __init__(
        self,
        tables: TransducerTables,
        text_tests: Sequence[frozenset[int]],
        text_readers: Sequence[frozenset[int]],
        classes: Sequence[Sequence[frozenset[int]]],
    ) -> None:
        self._tables = tables
        self._text_tests = text_tests
        self._asking = [decided | readers for decided, readers in zip(text_tests, text_readers)]
        self._classes = classes
        self._nodes: list[_DecisionNode] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self.nodes: IntRows = np.zeros((64, 4), np.int64)
        self.next: Ints = np.full(256, layout.UNKNOWN, np.int64)
        self.outcomes: IntRows = np.full((64, 3), layout.UNKNOWN, np.int64)
        self.together: Ints = np.zeros(64, np.int64)
        self._next_used = self._together_used = self._outcomes_used = 0
        moves = tables.moves
        # In any case there is room for the nodes of a stretch, and for those of all tests of one row.
        least = (layout.STRETCH + 1) * len(text_tests) + len(tables.tests) + 1
        self._most = max(least, min(limits.SCAN_NODES, limits.SCAN_KNOWLEDGE // (1 + len(moves.rows))))
        root = _Knowledge(_NOTHING, tuple(move.needs for move in moves.rows), tuple(map(tuple, moves.waiting)))
        #: Where asking begins, as `ScanArrays.next` has it.
        self.root = self._following(root.after(_NOTHING, _NOTHING), -1)
        #: Signatures are those of this list; the tables begin a new one when they forget them.
        self.signatures_of = tables.relevant

    def explore(self, most: int) -> None:
        """Answer at most this many questions before events ask them, as far as classes of text are known."""
        number = 0
        while number < len(self._nodes):
            kind, _, _, width = self.nodes[number].tolist()
            outcomes = 0 if kind == layout.ASK_TESTS else len(self._classes[kind]) if kind >= 0 else width
            for outcome in range(outcomes):
                if most == 0 or len(self._nodes) >= self._most:
                    return
                most -= 1
                self.answer(number, outcome)
            number += 1

    def fresh(self, tables: TransducerTables) -> Decisions:
        """The same decisions for a fresh copy of the tables, to which answers are added apart from these."""
        other = copy(self)
        other._tables, other.signatures_of = tables, tables.relevant
        other._nodes, other._numbers = list(self._nodes), dict(self._numbers)
        other.nodes, other.next = self.nodes.copy(), self.next.copy()
        other.outcomes, other.together = self.outcomes.copy(), self.together.copy()
        return other

    def answer(self, number: int, outcome: int) -> None:
        """Find out where an outcome of a node leads: a class of text, or a bit for each test."""
        node = self._nodes[number]
        if node.text >= 0:
            held = self._classes[node.text][outcome] & self._text_tests[node.text]
            asked = self._text_tests[node.text]
        else:
            held = frozenset(t for k, t in enumerate(node.tests) if outcome >> k & 1)
            asked = frozenset(node.tests)
        # Every text that makes a difference below a test has been asked above it.
        last = node.text if node.text >= 0 else len(self._text_tests)
        to = self._following(node.known.after(held, asked - held), last)
        row = self.nodes[number]
        if row[layout.N_ASKS] == layout.ASK_TESTS:
            self._enter(number, outcome, to)
            return
        if outcome >= row[layout.N_WIDTH]:
            width = int(row[layout.N_WIDTH])
            begin = self._room_for(2 * outcome)
            old = int(row[layout.N_NEXT])
            self.next[begin : begin + width] = self.next[old : old + width]
            row[layout.N_NEXT], row[layout.N_WIDTH] = begin, 2 * outcome
        place = row[layout.N_NEXT] + outcome
        assert self.next[place] == layout.UNKNOWN, "what is known is not asked for"
        self.next[place] = to

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _following(self, known: _Knowledge, text: int) -> int:
        """The number of the node that asks on, after column ``text`` of the texts; or what `ScanArrays.next` says."""
        needed = known.needed
        left = needed - known.satisfied
        if not left:
            (signature,) = self._tables.signatures([known.satisfied])
            relevant = self._tables.counted or self._tables.relevant[signature]
            return layout.SIGNATURE - signature if relevant else layout.IRRELEVANT
        texts = range(text + 1, len(self._text_tests))
        asked = next((t for t in texts if not left.isdisjoint(self._asking[t])), -1)
        kind, tests = asked, tuple[int, ...]()
        if asked < 0:
            alone = len(left) <= limits.SCAN_ASKED_ALONE
            kind = layout.ASK_TEST if alone else layout.ASK_TESTS
            tests = tuple(sorted(left)[: 1 if alone else _TOGETHER])
        key = (asked, tests, known.satisfied & needed, known.moves, known.waiting)
        if key not in self._numbers:
            self._numbers[key] = self._add(_DecisionNode(known, asked, tests), kind)
        return self._numbers[key]

    def _add(self, node: _DecisionNode, kind: int) -> int:
        number = len(self._nodes)
        if number >= self._most:
            raise TooManyDecisionsError
        self._nodes.append(node)
        if number >= len(self.nodes):
            self.nodes = np.concatenate([self.nodes, np.zeros_like(self.nodes)])
        if kind == layout.ASK_TESTS:
            begin, count = self._together_used, len(node.tests)
            while begin + count > len(self.together):
                self.together = np.concatenate([self.together, np.zeros_like(self.together)])
            self.together[begin : begin + count] = node.tests
            self._together_used += count
            self.nodes[number] = (kind, begin, 0, count)
            return number
        what, width = (0, max(8, 2 * len(self._classes[kind]))) if kind >= 0 else (node.tests[0], 2)
        self.nodes[number] = (kind, what, self._room_for(width), width)
        return number

    def _room_for(self, width: int) -> int:
        begin = self._next_used
        while begin + width > len(self.next):
            self.next = np.concatenate([self.next, np.full_like(self.next, layout.UNKNOWN)])
        self._next_used += width
        return begin

    def _enter(self, number: int, outcome: int, to: int) -> None:
        """Enter where an outcome of several tests leads; the table is never more than half full."""
        if 2 * (self._outcomes_used + 1) > len(self.outcomes):
            old = self.outcomes[self.outcomes[:, layout.H_NEXT] != layout.UNKNOWN]
            self.outcomes = np.full((2 * len(self.outcomes), 3), layout.UNKNOWN, np.int64)
            for entry in old:
                self.outcomes[slot_of(self.outcomes, *entry[:2].tolist())] = entry
        self.outcomes[slot_of(self.outcomes, number, outcome)] = (number, outcome, to)
        self._outcomes_used += 1
