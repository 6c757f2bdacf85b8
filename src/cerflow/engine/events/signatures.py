"""The signatures of the events of a batch: the tests that each satisfies, as far as they make a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cerflow import limits
from cerflow.conditions.guards import StreamTest, TypeTest
from cerflow.engine.evaluate.binding import calls_in
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED, Precomputed
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.kernels.table import combine
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Attribute, Function
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import Node, walk
from cerflow.language.select import Select
from cerflow.schema import ValueKind
from cerflow.values.array_types import Ints, Mask, Smalls

__all__ = ["Evaluation", "SignatureReader", "columns_of_test", "columns_read"]

#: Tests that are packed into one code as bits.
_PACKED = 8


def columns_of_test(tree: Node, tables: TransducerTables) -> frozenset[str]:
    """The columns that a test or expression reads."""
    schema = tables.schema
    found: set[str] = set()
    for current in walk(tree):
        if isinstance(current, Attribute):
            found.add(schema.column(current.name))
        elif isinstance(current, TypeTest):
            found.add(schema.type)
            if current.stream is not None and schema.stream is not None:
                found.add(schema.stream)
        elif isinstance(current, StreamTest) and schema.stream is not None:
            found.add(schema.stream)
        elif isinstance(current, Precomputed):
            found.add(PRECOMPUTED)
        elif isinstance(current, Function) and current.name == "time" and schema.time is not None:
            found.add(schema.time)
    return frozenset(found)


def columns_read(tables: TransducerTables, select: Select) -> frozenset[str]:
    """The columns that the tables of a query read: in tests and expressions, in windows, and as partition keys."""
    trees: list[Node] = [*tables.tests, *(c.expression for c in tables.columns if c.expression is not None)]
    found = {name for tree in trees for name in columns_of_test(tree, tables)}
    windows = [tables.transducer.window, *(column.window for column in tables.columns)]
    found.update(window.attribute for window in windows if isinstance(window, AttributeWindow))
    found.update(tables.schema.column(name) for key in select.partition for name in key)
    return frozenset(found)


@dataclass(frozen=True)
class _Feature:
    """A small code for each event, and the tests that each code satisfies."""

    codes: Ints
    satisfied: Sequence[frozenset[int]]


@dataclass(frozen=True)
class Evaluation:
    """The evaluation plan for the tests and columns of some tables, independent of the events."""

    #: Tests that are evaluated once per distinct string, by the column they read; and all others.
    by_string: dict[str, list[int]]
    others: list[int]
    #: For tests with predicates: the other tests of each transition, those without predicates.
    before: dict[int, list[frozenset[int]]]
    #: The columns whose expressions call predicates.
    asking: frozenset[int]
    #: The tests of text, with the results for texts so far.
    texts: TextTests
    #: For sets of satisfied tests of text, whether such events may be relevant, as far as computed.
    may_be_relevant: dict[frozenset[int], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: TransducerTables) -> Evaluation:
        """The evaluation plan of some tables."""
        by_string: dict[str, list[int]] = {}
        others: list[int] = []
        asking = {t for t, test in enumerate(tables.tests) if calls_in(test)}
        places = ("position",) if tables.schema.time is not None else ("position", "time")
        for number, test in enumerate(tables.tests):
            read = columns_of_test(test, tables)
            name = next(iter(read)) if len(read) == 1 else None
            positional = any(isinstance(n, Function) and n.name in places for n in walk(test))
            if (
                name is not None
                and not positional
                and number not in asking
                and tables.schema.kind(name) is ValueKind.STRING
            ):
                by_string.setdefault(name, []).append(number)
            else:
                others.append(number)
        return cls(
            by_string,
            others,
            {t: [others_of - asking for others_of in tables.moves.other_tests(t)] for t in asking},
            frozenset(k for k, c in enumerate(tables.columns) if c.expression is not None and calls_in(c.expression)),
            TextTests(
                {name: {t: tables.tests[t] for t in tests} for name, tests in by_string.items()},
                tables.schema,
                tables.atoms.unit,
            ),
        )


class SignatureReader:
    """Evaluates the tests of some tables: first those of texts, then the others where these leave a chance."""

    def __init__(self, tables: TransducerTables, evaluation: Evaluation) -> None:
        self.tables = tables
        self.by_string, self.others = evaluation.by_string, evaluation.others
        self._before = evaluation.before
        groups = [self.others[start : start + _PACKED] for start in range(0, len(self.others), _PACKED)]
        self._packed = [
            (some, [frozenset(t for b, t in enumerate(some) if c >> b & 1) for c in range(1 << len(some))])
            for some in groups
        ]
        self.texts = evaluation.texts
        self._open = frozenset(self.others)
        self._may_be_relevant = evaluation.may_be_relevant

    def may_be_relevant(self, satisfied: frozenset[int]) -> bool:
        """Whether an event whose texts satisfy exactly these tests may be relevant, whatever the other tests say."""
        if satisfied not in self._may_be_relevant:
            self._may_be_relevant[satisfied] = self.tables.moves.may_be_relevant(satisfied, self._open)
        return self._may_be_relevant[satisfied]

    def read(self, rows: BatchRows, classes: Ints, satisfied: Sequence[frozenset[int]]) -> Smalls:
        """The signature of each row, given its class by `TextTests` and the tests that hold in each class."""
        current = _Feature(classes, satisfied)
        for some, outcomes in self._packed:
            codes = np.zeros(len(classes), np.uint8)
            for bit, number in enumerate(some):
                codes |= self._test(number, rows, classes, satisfied).astype(np.uint8) << np.uint8(bit)
            current = _both(current, _Feature(codes.astype(np.int64), outcomes))
        occurring = np.flatnonzero(np.bincount(current.codes, minlength=1))
        numbers = np.zeros(len(current.satisfied) or 1, np.int32)
        numbers[occurring] = self.tables.signatures([current.satisfied[c] for c in occurring.tolist()])
        return numbers[current.codes]

    def _test(self, number: int, rows: BatchRows, classes: Ints, satisfied: Sequence[frozenset[int]]) -> Mask:
        if number not in self._open:
            return np.array([number in s for s in satisfied], bool)[classes]
        asked = self._asked(number, rows, classes, satisfied) if number in self._before else None
        return np.broadcast_to(rows.truth(self.tables.tests[number], asked).true, classes.shape)

    def _asked(self, number: int, rows: BatchRows, classes: Ints, satisfied: Sequence[frozenset[int]]) -> Mask:
        """The rows that satisfy all other tests of some transition: predicates are called only for these."""
        asked = np.zeros(classes.shape, bool)
        for tests in self._before[number]:
            held = np.ones(classes.shape, bool)
            for test in tests:
                held &= self._test(test, rows, classes, satisfied)
            asked |= held
        return asked


def _both(left: _Feature, right: _Feature) -> _Feature:
    """The combinations of two features; if there could be very many, only those that occur are numbered."""
    width = len(left.satisfied)
    if width * len(right.satisfied) <= limits.CODE_COMBINATIONS:
        codes = left.codes.copy()
        seen = np.zeros(width * len(right.satisfied), np.uint8)
        combine(right.codes, np.arange(len(right.satisfied)), width, codes, seen)
        satisfied: list[frozenset[int]] = [frozenset()] * len(seen)
        for c in np.flatnonzero(seen).tolist():
            satisfied[c] = left.satisfied[c % width] | right.satisfied[c // width]
        return _Feature(codes, satisfied)
    occurring, codes = np.unique(left.codes + right.codes * width, return_inverse=True)
    return _Feature(codes, [left.satisfied[c % width] | right.satisfied[c // width] for c in occurring.tolist()])
