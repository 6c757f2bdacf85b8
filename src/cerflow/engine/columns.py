"""A batch of events as the arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.automata.guards import TypeTest
from cerflow.engine.binding import calls_in
from cerflow.engine.evaluate import Rows
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL, Events
from cerflow.engine.measures import bounds, measures
from cerflow.engine.program import Program
from cerflow.engine.vectors import Vector
from cerflow.language.condition import Attribute, Function
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window
from cerflow.language.node import Node, walk
from cerflow.schema import Kind

__all__ = ["EventReader", "attributes_read"]

Ints = NDArray[np.int64]
#: Up to this the combinations of codes that occur are found by counting, then by sorting.
_WIDEST = 1 << 16
#: Tests that are packed into one code as bits.
_PACKED = 8


def attributes_read(tree: Node, program: Program) -> frozenset[str]:
    """The columns that a test or expression reads."""
    schema = program.schema
    found: set[str] = set()
    for current in walk(tree):
        if isinstance(current, Attribute):
            implicit = current.name == "type" and "type" not in schema.attributes
            found.add(schema.type if implicit else current.name)
        elif isinstance(current, TypeTest):
            found.add(schema.type)
            if current.stream is not None and schema.stream is not None:
                found.add(schema.stream)
        elif isinstance(current, Function) and current.name == "time" and schema.time is not None:
            found.add(schema.time)
    return frozenset(found)


def _window_attribute(window: Window, program: Program) -> str | None:
    if isinstance(window, AttributeWindow):
        return window.attribute
    return program.schema.time if isinstance(window, DurationWindow) else None


@dataclass(frozen=True)
class _Feature:
    """A small code for each event, and which tests each code satisfies."""

    codes: Ints
    satisfied: list[frozenset[int]]


class EventReader:
    """Prepares batches for one program.

    ``keys`` are the partition keys, each a choice of attributes; ``position`` names the column with the positions of
    events in the whole stream, if they are not counted here.
    """

    def __init__(self, program: Program, keys: Sequence[tuple[str, ...]], position: str | None = None) -> None:
        self.program = program
        self.keys = keys
        self.position = position
        self.unit = program.atoms.unit
        #: Tests that are evaluated once per distinct string, by the column they read; and all others.
        self.by_string, self.others = self._group_tests()
        groups = [self.others[start : start + _PACKED] for start in range(0, len(self.others), _PACKED)]
        self._packed = [
            (some, [frozenset(t for b, t in enumerate(some) if c >> b & 1) for c in range(1 << len(some))])
            for some in groups
        ]
        #: For tests that ask predicates: of the other tests of each transition, those that do not.
        asking = {t for t, test in enumerate(program.tests) if calls_in(test)}
        self._before = {t: [others - asking for others in program.other_tests(t)] for t in asking}
        needed: set[str] = set()
        for column in program.columns:
            if column.expression is not None:
                needed |= attributes_read(column.expression, program)
        windows = [c.window for c in program.columns] + [program.transducer.window]
        needed |= {name for w in windows if w is not None and (name := _window_attribute(w, program)) is not None}
        self._needed = sorted(needed)

    def _group_tests(self) -> tuple[dict[str, list[int]], list[int]]:
        by_string: dict[str, list[int]] = {}
        others: list[int] = []
        for number, test in enumerate(self.program.tests):
            read = attributes_read(test, self.program)
            name = next(iter(read)) if len(read) == 1 else None
            places = ("position",) if self.program.schema.time is not None else ("position", "time")
            positional = any(isinstance(n, Function) and n.name in places for n in walk(test))
            asks = calls_in(test)
            if name is not None and not positional and not asks and self.program.schema.kind(name) is Kind.STRING:
                by_string.setdefault(name, []).append(number)
            else:
                others.append(number)
        return by_string, others

    def read(self, batch: pa.RecordBatch, first: int) -> tuple[Events, NDArray[np.int64]]:
        """The events that matter, and their row numbers; the batch begins at position ``first`` of the stream."""
        positions = np.arange(first, first + batch.num_rows, dtype=np.int64)
        numbers = positions if self.position is None else _whole_numbers(batch.column(self.position))
        rows = Rows(batch, self.program.schema, positions, self.unit, numbers)
        self.program.forget_signatures()
        signatures = self._signatures(rows)
        relevant = np.array(self.program.relevant, bool)[signatures]
        words, known = self._key_words(rows)
        if self.program.counted:
            chosen = np.flatnonzero(known) if known is not None else np.arange(batch.num_rows)
        else:
            chosen = np.flatnonzero(relevant if known is None else relevant & known)
        indices = pa.array(chosen)
        table = batch.select(self._needed)
        taken = table.take(indices) if self._needed else table
        here = Rows(taken, self.program.schema, positions[chosen], self.unit, numbers[chosen])
        columns = np.zeros((len(chosen), max(1, len(self.program.columns))), np.int64)
        for k in range(len(self.program.columns)):
            columns[:, k] = self._column(k, here, signatures[chosen])
        measure, bound = self._window(here, len(chosen))
        ranks = self.program.strings.ranks() if self.program.atoms.ordered else np.zeros(1, np.int64)
        events = Events(
            signature=signatures[chosen].astype(np.int32),
            position=positions[chosen],
            measure=measure,
            bound=bound,
            keys=np.ascontiguousarray(words[chosen]),
            columns=columns,
            ranks=ranks,
        )
        return events, chosen

    # -- signatures ----------------------------------------------------------------------------------------------

    def _signatures(self, rows: Rows) -> Ints:
        n = rows.batch.num_rows
        current = _Feature(np.zeros(n, np.int64), [frozenset()])
        for feature in self._features(rows):
            current = _both(current, feature)
        numbers = np.array(self.program.signatures(current.satisfied) or [0], np.int64)
        return numbers[current.codes]

    def _features(self, rows: Rows) -> list[_Feature]:
        features = [self._string_feature(rows, name, tests) for name, tests in self.by_string.items()]
        for some, satisfied in self._packed:
            codes = np.zeros(rows.batch.num_rows, np.int64)
            for bit, number in enumerate(some):
                codes |= self._test(number, rows).astype(np.int64) << bit
            features.append(_Feature(codes, satisfied))
        return features

    def _test(self, number: int, rows: Rows) -> NDArray[np.bool_]:
        asked = self._asked(number, rows) if number in self._before else None
        return np.broadcast_to(rows.truth(self.program.tests[number], asked).true, (rows.batch.num_rows,))

    def _asked(self, number: int, rows: Rows) -> NDArray[np.bool_]:
        """The rows that satisfy all other tests of some transition: predicates are not asked about others."""
        asked = np.zeros(rows.batch.num_rows, bool)
        for tests in self._before[number]:
            satisfied = np.ones(rows.batch.num_rows, bool)
            for test in tests:
                satisfied &= self._test(test, rows)
            asked |= satisfied
        return asked

    def _string_feature(self, rows: Rows, name: str, tests: list[int]) -> _Feature:
        """Evaluate the tests once per distinct string, null included."""
        vector = rows.attribute(name)
        texts = pa.array([*vector.dictionary, None], pa.string())
        batch = pa.RecordBatch.from_arrays([texts], names=[name])
        distinct = Rows(batch, self.program.schema, np.zeros(len(texts), np.int64), self.unit)
        held = [self._test(t, distinct) for t in tests]
        classes: dict[frozenset[int], int] = {}
        of_text = np.array(
            [
                classes.setdefault(frozenset(t for t, h in zip(tests, held) if h[k]), len(classes))
                for k in range(len(texts))
            ],
            np.int64,
        )
        codes = vector.data if vector.nulls is None else np.where(vector.nulls, len(texts) - 1, vector.data)
        return _Feature(of_text[codes], list(classes))

    # -- keys, columns, windows ----------------------------------------------------------------------------------

    def _key_words(self, rows: Rows) -> tuple[Ints, NDArray[np.bool_] | None]:
        """The partition key of each event as 64-bit words, and where it has one."""
        n = rows.batch.num_rows
        words = np.zeros((n, max(1, len(self.keys))), np.int64)
        if not self.keys:
            return words, None
        known = np.ones(n, bool)
        for k, names in enumerate(self.keys):
            value = np.zeros(n, np.int64)
            missing = np.ones(n, bool)
            vectors = [rows.attribute(name) for name in names]
            as_float = any(v.kind is Kind.FLOAT for v in vectors)
            for vector in vectors:
                bits = self._bits(vector, as_float)
                value = np.where(missing, bits, value)
                missing = missing & vector.missing()
            words[:, k] = value
            known &= ~missing
        return words, known

    def _bits(self, vector: Vector, as_float: bool) -> Ints:
        if vector.kind is Kind.STRING:
            codes = self.program.strings.codes(vector.dictionary)
            data = codes[vector.data] if len(codes) else np.zeros(vector.data.shape, np.int64)
            return Vector(Kind.INTEGER, data, vector.nulls).integers()
        if as_float:
            # One bit pattern for zero and one for null.
            floats = vector.floats() + 0.0
            return np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        if vector.kind is Kind.FLOAT:
            # An expression without a kind of its own, such as NULL / 2, is null everywhere.
            return np.full(vector.data.shape, NULL)
        return vector.integers()

    def _column(self, k: int, rows: Rows, signatures: Ints) -> Ints:
        column = self.program.columns[k]
        n = len(rows.positions)
        if column.window is not None:
            if self.program.partitioned and isinstance(column.window, CountWindow):
                return np.zeros(n, np.int64)  # the kernel counts positions in the substream
            make = bounds if column.bound else measures
            return make(column.window, rows, self.program.schema)
        assert column.expression is not None
        asked = self.program.wanted(k)[signatures] if calls_in(column.expression) else None
        return np.broadcast_to(self._bits(rows.value(column.expression, asked), column.as_float), (n,))

    def _window(self, rows: Rows, n: int) -> tuple[Ints, Ints]:
        window = self.program.transducer.window
        if window is None or (self.program.partitioned and isinstance(window, CountWindow)):
            return np.zeros(n, np.int64), np.full(n, NO_BOUND)
        measure = measures(window, rows, self.program.schema)
        bound = bounds(window, rows, self.program.schema)
        # Without a measure an event can neither begin nor end a complex event, and forgets nothing.
        return np.where(measure == NULL, NOT_BEGUN, measure), np.where(bound == NULL, NO_BOUND, bound)


def _whole_numbers(column: pa.Array) -> Ints:
    numbers: Ints = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _both(left: _Feature, right: _Feature) -> _Feature:
    """The combinations of two features that occur, numbered without gaps."""
    width = len(left.satisfied)
    codes = left.codes + right.codes * width
    if width * len(right.satisfied) <= _WIDEST:
        occurring = np.flatnonzero(np.bincount(codes, minlength=1))
        numbers = np.zeros(width * len(right.satisfied), np.int64)
        numbers[occurring] = np.arange(len(occurring))
        codes = numbers[codes]
    else:
        occurring, codes = np.unique(codes, return_inverse=True)
    return _Feature(codes, [left.satisfied[c % width] | right.satisfied[c // width] for c in occurring.tolist()])
