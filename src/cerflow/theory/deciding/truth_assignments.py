"""Atomic conditions on one event, and the combinations of truth values that they can have together.

Conditions that share attributes are examined together. A few values of every attribute stand for all others, and
sample events made of them show which combinations exist. Where that is not certain (arithmetic, functions, REGEXP, user
predicates, times and positions), further combinations are *assumed*: an event may or may not exist.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import combinations, product

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.events import Event, Value, is_moment
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.language import condition as c
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import Node, walk
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.conditions.evaluate import value_on
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.theory.deciding import samples
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.deciding.event_spaces import EventSpace

#: Values of attributes, by column.
Values = Mapping[str, Value]

#: The expressions of conditions that can be evaluated on sample events.
_EVALUATED = (c.Attribute, c.Literal, c.Arithmetic, c.Negative, c.Function)
#: Functions whose values no sample stands for.
_NOT_TRIED = ("||", *c.LONGER_FUNCTIONS)
#: Conditions on attributes of these kinds are not evaluated on sample events.
_NEVER_TRIED = (ValueKind.DECIMAL, ValueKind.OTHER)


@dataclass(frozen=True)
class TruthAssignment:
    """Truth values that conditions have together, with attributes of an event that gives them.

    ``assumed`` are conditions that this event need not give their values: whether any event does is not known.
    """

    truths: Mapping[c.Condition, bool | None]
    values: Values
    assumed: tuple[c.Condition, ...] = ()


class TruthAssignments:
    """The truth assignments to atomic conditions, in one event space; no other type has a name to ``avoid``."""

    def __init__(self, event_space: EventSpace, avoid: frozenset[str], budget: Budget) -> None:
        self.event_space = event_space
        self.avoid = avoid
        self.budget = budget
        self._known: dict[tuple[c.Condition, ...], tuple[TruthAssignment, ...]] = {}

    def columns(self, condition: c.Condition) -> frozenset[str]:
        """The columns that a condition reads."""
        found = set(map(self.event_space.column, attributes_in(condition)))
        if isinstance(condition, TypeTest):
            found.add(self.event_space.type)
            if condition.stream is not None and self.event_space.stream is not None:
                found.add(self.event_space.stream)
        elif isinstance(condition, StreamTest) and self.event_space.stream is not None:
            found.add(self.event_space.stream)
        return frozenset(found)

    def certain(self, condition: c.Condition) -> bool:
        """Whether the values that are tried stand for all values, as far as this condition is concerned."""
        simple = all(map(self._is_simple, condition.children))
        return simple and not isinstance(condition, c.Regexp) and self._tried(condition)

    def of(self, conditions: Iterable[c.Condition]) -> tuple[TruthAssignment, ...]:
        """All assignments to conditions that share attributes, those that certainly exist first."""
        key = tuple(conditions)
        if key not in self._known:
            self._known[key] = tuple(self._assignments(key))
        return self._known[key]

    def _is_simple(self, expression: object) -> bool:
        if isinstance(expression, c.Function) and expression.name == "length":
            return isinstance(expression.arguments[0], c.Attribute)
        return isinstance(expression, c.Attribute | c.Literal)

    def _tried(self, condition: c.Condition) -> bool:
        """Whether a condition can be evaluated on events that are made up."""
        if isinstance(condition, TypeTest | StreamTest):
            return True
        if not isinstance(condition, c.Comparison | c.In | c.IsNull | c.Like | c.Regexp):
            return False
        if _computes(condition) and any(map(self._is_of_time, walk(condition))):
            return False
        for current in walk(condition):
            if current is not condition and not isinstance(current, _EVALUATED):
                return False
            if isinstance(current, c.Function) and (current.name in c.DATE_PARTS or current.name in _NOT_TRIED):
                return False
            if isinstance(current, c.Attribute) and self.event_space.kinds.get(current.name) in _NEVER_TRIED:
                return False
        return self.event_space.time not in self.columns(condition)

    def _is_of_time(self, current: Node) -> bool:
        """Whether it may be a timestamp or a duration."""
        if isinstance(current, c.Literal):
            return isinstance(current.value, timedelta | str)
        kind = self.event_space.kinds.get(current.name) if isinstance(current, c.Attribute) else None
        return kind in (ValueKind.TIMESTAMP, ValueKind.DURATION)

    # -- assignments ---------------------------------------------------------------------------------------------

    def _assignments(self, conditions: Sequence[c.Condition]) -> Iterator[TruthAssignment]:
        tried = [one for one in conditions if self._tried(one)]
        columns = sorted(frozenset().union(*map(self.columns, conditions)))
        choices: list[list[Value]] = []
        complete = True
        for column in columns:
            candidates, all_there = self._values(column, conditions)
            choices.append(candidates)
            complete &= all_there
        certain = {one for one in conditions if complete and self.certain(one)}
        if len(columns) > 1 and self._has_odd_orders(columns, conditions):
            certain -= {one for one in certain if len(self.columns(one)) > 1 and not isinstance(one, TypeTest)}
        self.budget.spend(math.prod(map(len, choices)) * len(conditions))
        found: dict[tuple[bool | None, ...], Values] = {}
        shapes: dict[tuple[object, ...], tuple[dict[c.Condition, bool | None], Values]] = {}
        for chosen in product(*choices):
            values = dict(zip(columns, chosen))
            truths = {one: self._truth(one, values) for one in tried}
            found.setdefault(tuple(truths[one] for one in tried), values)
            nulls = tuple(column for column in columns if values[column] is None)
            known = {one: t for one, t in truths.items() if one in certain}
            shapes.setdefault((tuple(known.values()), nulls), (known, values))
        if len(tried) == len(conditions):
            for vector, example in found.items():
                yield TruthAssignment(dict(zip(tried, vector)), example)
        open_ = [one for one in conditions if one not in certain]
        if open_:
            yield from self._assumed(shapes.values(), open_, tried, found)

    def _assumed(
        self,
        shapes: Iterable[tuple[dict[c.Condition, bool | None], Values]],
        open_: Sequence[c.Condition],
        tried: Sequence[c.Condition],
        found: Mapping[tuple[bool | None, ...], Values],
    ) -> Iterator[TruthAssignment]:
        """Assignments that need not exist: what is certain, with all that is conceivable for the other conditions."""
        given: set[tuple[tuple[c.Condition, bool | None], ...]] = set()
        for known, values in shapes:
            options = [
                _conceivable(one, any(values[x] is None for x in self.columns(one)), one in tried) for one in open_
            ]
            self.budget.spend(math.prod(map(len, options)))
            for chosen in product(*options):
                truths = {**known, **dict(zip(open_, chosen))}
                exists = len(tried) == len(truths) and tuple(truths[one] for one in tried) in found
                if not exists and (key := tuple(truths.items())) not in given:
                    given.add(key)
                    yield TruthAssignment(truths, values, tuple(open_))

    def _has_odd_orders(self, columns: Sequence[str], conditions: Sequence[c.Condition]) -> bool:
        """Whether attributes that are compared with one another may have orders that are not tried."""
        nodes = [n for one in conditions for n in walk(one)]
        if any(isinstance(n, c.Like) or (isinstance(n, c.Function) and n.name == "length") for n in nodes):
            return True
        mixed = len({self.event_space.kinds.get(column) for column in columns}) > 1
        # Large integers are rounded where they meet floats.
        return mixed and any(abs(one) >= 2**52 for one in _numbers(_constants(conditions)))

    def _truth(self, condition: c.Condition, values: Values) -> bool | None:
        event_space = self.event_space
        if isinstance(condition, TypeTest):
            stream = None if event_space.stream is None else values.get(event_space.stream)
            of_stream = condition.stream is None or stream is None or stream == condition.stream
            return values[event_space.type] == condition.type and of_stream
        if isinstance(condition, StreamTest):
            return event_space.stream is None or values[event_space.stream] == condition.stream
        kind = values.get(event_space.type)
        event = Event(0, kind if isinstance(kind, str) else "", 0, values)
        truth = value_on(condition, {None: event})
        assert truth is None or isinstance(truth, bool)
        return truth

    # -- values --------------------------------------------------------------------------------------------------

    def _values(self, column: str, conditions: Sequence[c.Condition]) -> tuple[list[Value], bool]:
        """Values of a column that stand for all, and whether they surely do."""
        event_space = self.event_space
        many = len(frozenset().union(*(self.columns(one) for one in conditions)))
        if column == event_space.type or column == event_space.stream:
            words, complete = self._words(column, conditions, many)
            return [word for word in words if word], complete
        kind = event_space.kinds[column]
        arrow = event_space.columns.get(column)
        constants = _constants(conditions)
        complete = True
        values: list[Value]
        match kind:
            case ValueKind.BOOLEAN:
                values = [True, False]
            case ValueKind.STRING:
                words, complete = self._words(column, conditions, many)
                values = list(words)
            case ValueKind.TIMESTAMP:
                texts = [one for one in constants if isinstance(one, str) and is_moment(one)]
                values = list(samples.candidate_moments(texts, many, samples.moment_unit(arrow)))
            case ValueKind.DURATION:
                unit = samples.moment_unit(arrow)
                sizes = [one // timedelta(microseconds=unit) for one in constants if isinstance(one, timedelta)]
                most = LARGEST_INTEGER // unit
                values = [timedelta(microseconds=n * unit) for n in samples.integers(sizes, many + 1, -most, most)]
            case ValueKind.INTEGER:
                numbers = [*_numbers(constants), *_combined(conditions)]
                values = list(samples.integers(numbers, many, *samples.whole_limits(arrow)))
            case ValueKind.FLOAT:
                values = list(samples.floats([*_numbers(constants), *_combined(conditions)], many))
                if arrow is not None and not pa.types.is_float64(arrow):
                    values = [v for v in values if _fits(v, arrow)]
                    complete = False
            case _:
                values = []
        return [*values, *([] if column in event_space.required else [None])], complete

    def _words(self, column: str, conditions: Sequence[c.Condition], many: int) -> tuple[list[str], bool]:
        own = [one for one in conditions if column in self.columns(one)]
        readers: dict[samples.StringAutomaton, None] = {}
        for condition in own:
            readers.update(dict.fromkeys(self._readers(column, condition)))
        is_type = column == self.event_space.type
        words, complete = samples.sorts_of_strings(list(readers), self.avoid if is_type else ())
        if many > 1 or any(not self.certain(one) for one in own):
            texts = [one for one in _constants(conditions) if isinstance(one, str)]
            texts += [piece for one in own if isinstance(one, c.Regexp) for piece in _pieces(one.pattern)]
            words = list(dict.fromkeys([*words, *samples.strings_between(texts, many)]))
        return words, complete

    def _readers(self, column: str, condition: c.Condition) -> list[samples.StringAutomaton]:
        match condition:
            case TypeTest(type_, stream):
                return [samples.StringAutomaton(tuple(type_ if column == self.event_space.type else stream or ""))]
            case StreamTest(stream):
                return [samples.StringAutomaton(tuple(stream))]
            case c.Like(c.Attribute(), pattern):
                return [samples.StringAutomaton.like(pattern)]
            case c.Comparison(operator, c.Attribute(), c.Literal(str(text))):
                return [samples.StringAutomaton(tuple(text), ordered=operator is not Operator.EQ)]
            case c.Comparison(_, c.Function(name="length"), c.Literal(value)) if _is_number(value):
                return [_length(value)]
            case c.In(c.Attribute(), items):
                return [samples.StringAutomaton(tuple(i.value)) for i in items if isinstance(i.value, str)]
            case c.In(c.Function(name="length"), items):
                return [_length(i.value) for i in items if _is_number(i.value)]
        return []


def _conceivable(condition: c.Condition, null: bool, tried: bool) -> tuple[bool | None, ...]:
    """The truth values that a condition might have, on an event that has a null among the attributes it reads.

    Of one that cannot be tried nothing is known.
    """
    if isinstance(condition, c.IsNull):
        return (True, False)
    if not tried:
        return (True, False, None)
    if null:
        return (None,)
    # Of values that are there, only what is computed with numbers may be missing.
    return (True, False, None) if _computes(condition) else (True, False)


def _computes(condition: c.Condition) -> bool:
    """Whether a condition computes with numbers or times."""
    return any(
        isinstance(n, c.Arithmetic | c.Negative)
        or (isinstance(n, c.Function) and n.name not in ("lower", "upper", "length"))
        for n in walk(condition)
    )


def _length(value: object) -> samples.StringAutomaton:
    assert isinstance(value, int | float)
    # Longer strings are not tried.
    return samples.StringAutomaton.length(min(math.ceil(abs(value)), 10_000))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _constants(conditions: Iterable[c.Condition]) -> list[Value]:
    return list(dict.fromkeys(n.value for one in conditions for n in walk(one) if isinstance(n, c.Literal)))


def _numbers(constants: Iterable[Value]) -> list[int | float]:
    return [one for one in constants if isinstance(one, int | float) and not isinstance(one, bool)]


def _combined(conditions: Sequence[c.Condition]) -> list[int | float]:
    """Numbers at which arithmetic may change its outcome: some sums and quotients of its constants."""
    if not any(isinstance(n, c.Arithmetic | c.Negative | c.Function) for one in conditions for n in walk(one)):
        return []
    constants = [float(one) for one in _numbers(_constants(conditions)) if abs(one) < 1e15][: limits.COMBINED_CONSTANTS]
    found = {0.0, 1.0, -1.0, 0.5, *constants, *(-one for one in constants)}
    for a, b in combinations(constants, 2):
        found.update((a + b, a - b, b - a, a * b))
        found.update(x / y for x, y in ((a, b), (b, a)) if y)
    return [int(one) if one.is_integer() else one for one in sorted(found)]


def _pieces(pattern: str) -> list[str]:
    """Texts that are likely to be found by a regular expression."""
    runs = re.findall(r"[^\W_]+", re.sub(r"\\.", "", pattern))
    return list(dict.fromkeys([*runs, "".join(runs), "0", "A"]))


def _fits(value: Value, arrow: pa.DataType) -> bool:
    """Whether a column can hold a number exactly."""
    try:
        written = Decimal(repr(value)) if pa.types.is_decimal(arrow) else value
        return bool(float(pa.scalar(written, arrow).as_py()) == value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
