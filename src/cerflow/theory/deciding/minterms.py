"""The Boolean algebra of tests on one event: which of them can hold together (P1 App. C.3.2, predicate types).

A *minterm* stands for all events that some tests cannot tell apart; every event belongs to exactly one. Minterms are
found lazily, for the tests that are asked about: the type of the event is decided first, and with it most tests.

Atomic conditions that share attributes are examined together. A few values of every attribute stand for all others, and
sample events made of them show which truth values exist together. Where that is not certain (arithmetic, functions,
REGEXP, user predicates, times and positions), further combinations are *assumed*: an event may or may not exist.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from itertools import combinations, product
from typing import TypeGuard

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.events import Event, Value, is_moment
from cerflow.base.graphs import reached
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.language import condition as c
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import walk
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.conditions.connectives import TRUE, atomic_conditions, normal, settled
from cerflow.logic.conditions.evaluate import value_on
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.theory.deciding import samples
from cerflow.theory.deciding.witnesses import Budget, EventSpace

#: Values of attributes, by column.
_Values = Mapping[str, Value]
_Conditions = tuple[c.Condition, ...]

#: The expressions of conditions that can be evaluated on sample events.
_EVALUATED = (c.Attribute, c.Literal, c.Arithmetic, c.Negative, c.Function)
#: Functions whose values no sample stands for.
_NOT_TRIED = ("||", *c.DATE_PARTS, *c.LONGER_FUNCTIONS)
#: Conditions on attributes of these kinds are not evaluated on sample events.
_NEVER_TRIED = (ValueKind.DECIMAL, ValueKind.OTHER)


@dataclass(frozen=True)
class EventMinterm:
    """Events that some tests cannot tell apart.

    ``holds`` are the tests that hold of them; of all others it is certain that they do not. ``values`` are the
    attributes of one such event, by column, its type among them. If ``assumed`` names conditions, they leave it open
    whether there is such an event; then ``values`` is only part of the truth.
    """

    holds: frozenset[c.Condition]
    type: str
    values: _Values
    assumed: tuple[c.Condition, ...] = ()


#: Truth values that conditions have together, values of an event that has them, and the conditions that leave it open
#: whether there is one.
_Assignment = tuple[Mapping[c.Condition, bool | None], _Values, _Conditions]


class EventMinterms:
    """The minterms of tests in one event space. No other event has a type among the ``mentioned`` names."""

    def __init__(self, event_space: EventSpace, mentioned: frozenset[str], budget: Budget) -> None:
        self.event_space = event_space
        self._mentioned = mentioned
        self._budget = budget
        self._assigned = cache(self._assign)
        #: The minterms of distinct tests; those that certainly have an event come first.
        self.minterms = cache(self._minterms)

    def _minterms(self, tests: tuple[c.Condition, ...]) -> tuple[EventMinterm, ...]:
        """Raises `UnsupportedQueryError` when the budget is spent."""
        space = self.event_space
        others = {space.type: samples.fresh_word(self._mentioned), **({space.stream: "other"} if space.stream else {})}
        found: dict[frozenset[c.Condition], EventMinterm] = {}
        begin = tuple(map(normal, tests))
        #: The tests as far as they are decided, and whether there certainly is such an event.
        seen = {begin: True}
        pending: list[tuple[_Conditions, _Values, _Conditions]] = [(begin, {}, ())]
        while pending:
            current, values, doubts = pending.pop()
            undecided = [one for one in current if not isinstance(one, c.Constant)]
            if not undecided:
                holds = frozenset(test for test, truth in zip(tests, current) if truth == TRUE)
                complete = {**others, **values}
                if holds not in found or (found[holds].assumed and not doubts):
                    found[holds] = EventMinterm(holds, str(complete[space.type]), complete, doubts)
                continue
            # A test is settled in time proportional to its conditions.
            work = len(current) + sum(len(atomic_conditions(test)) for test in undecided)
            self._budget.spend(work)
            for truths, example, assumed in reversed(self._assigned(self._next(undecided))):
                self._budget.spend(work)
                after = tuple(settled(one, truths) for one in current)
                more = tuple(dict.fromkeys((*doubts, *assumed)))
                if after not in seen or (not more and not seen[after]):
                    seen[after] = not more
                    pending.append((after, {**values, **example}, more))
        return tuple(sorted(found.values(), key=lambda minterm: len(minterm.assumed)))

    def _next(self, open_: Sequence[c.Condition]) -> tuple[c.Condition, ...]:
        """The atomic conditions to decide next: some, and all that share attributes with them."""
        left = {one: self._columns(one) for test in open_ for one in atomic_conditions(test)}
        first = min(left, key=lambda one: (self.event_space.type not in left[one], not self._is_certain(one)))
        group = reached([first], lambda one: [other for other, own in left.items() if own & left[one]])
        return tuple(one for one in left if one in group)

    def _columns(self, condition: c.Condition) -> frozenset[str]:
        """The columns that a condition reads."""
        space = self.event_space
        found: set[str | None] = set(map(space.column, attributes_in(condition)))
        if isinstance(condition, TypeTest):
            found |= {space.type, None if condition.stream is None else space.stream}
        elif isinstance(condition, StreamTest):
            found.add(space.stream)
        return frozenset(one for one in found if one is not None)

    def _is_certain(self, condition: c.Condition) -> bool:
        """Whether the values that are tried stand for all values, as far as this condition is concerned."""
        for operand in condition.children:
            match operand:
                case c.Attribute() | c.Literal() | c.Function("length", (c.Attribute(),)):
                    continue
            return False
        return not isinstance(condition, c.Regexp) and self._is_tried(condition)

    def _is_tried(self, condition: c.Condition) -> bool:
        """Whether a condition can be evaluated on events that are made up."""
        if isinstance(condition, TypeTest | StreamTest):
            return True
        if not isinstance(condition, c.Comparison | c.In | c.IsNull | c.PatternTest):
            return False
        kinds = self.event_space.kinds
        times = False
        for current in list(walk(condition))[:-1]:
            kind = kinds.get(current.name) if isinstance(current, c.Attribute) else None
            if not isinstance(current, _EVALUATED) or kind in _NEVER_TRIED:
                return False
            if isinstance(current, c.Function) and current.name in _NOT_TRIED:
                return False
            of_time = isinstance(current, c.Literal) and isinstance(current.value, timedelta | str)
            times = times or of_time or kind in (ValueKind.TIMESTAMP, ValueKind.DURATION)
        return not (times and _computes(condition)) and self.event_space.time not in self._columns(condition)

    # -- assignments ---------------------------------------------------------------------------------------------

    def _assign(self, conditions: tuple[c.Condition, ...]) -> list[_Assignment]:
        """All assignments to conditions that share attributes, those that certainly exist first."""
        columns = sorted(frozenset().union(*map(self._columns, conditions)))
        choices = [self._values(column, conditions) for column in columns]
        tried = [one for one in conditions if self._is_tried(one)]
        certain = {one for one in tried if self._is_certain(one)} if all(whole for _, whole in choices) else set()
        if len(columns) > 1 and self._has_odd_orders(columns, conditions):
            certain = {one for one in certain if len(self._columns(one)) == 1 or isinstance(one, TypeTest)}
        self._budget.spend(math.prod(len(values) for values, _ in choices) * len(conditions))
        found: dict[tuple[bool | None, ...], _Values] = {}
        # The truth values that each condition may have, where some of them are not known.
        conceivable: dict[tuple[tuple[bool | None, ...], ...], _Values] = {}
        for chosen in product(*(values for values, _ in choices)):
            values = dict(zip(columns, chosen))
            truths = {one: self._truth(one, values) for one in tried}
            if len(tried) == len(conditions):
                found.setdefault(tuple(truths.values()), values)
            if len(certain) < len(conditions):
                options = (
                    (truths[one],)
                    if one in certain
                    else _conceivable(one, any(values[x] is None for x in self._columns(one)), one in truths)
                    for one in conditions
                )
                conceivable.setdefault(tuple(options), values)
        assumed: dict[tuple[bool | None, ...], _Values] = {}
        for all_options, example in conceivable.items():
            self._budget.spend(math.prod(map(len, all_options)))
            for vector in product(*all_options):
                if vector not in found:
                    assumed.setdefault(vector, example)
        doubts = tuple(one for one in conditions if one not in certain)
        return [
            *((dict(zip(conditions, vector)), values, ()) for vector, values in found.items()),
            *((dict(zip(conditions, vector)), values, doubts) for vector, values in assumed.items()),
        ]

    def _has_odd_orders(self, columns: Sequence[str], conditions: Sequence[c.Condition]) -> bool:
        """Whether attributes that are compared with one another may have orders that are not tried."""
        nodes = [n for one in conditions for n in walk(one)]
        if any(isinstance(n, c.Like) or (isinstance(n, c.Function) and n.name == "length") for n in nodes):
            return True
        mixed = len({self.event_space.kinds.get(column) for column in columns}) > 1
        # Large integers are rounded where they meet floats.
        return mixed and any(abs(one) >= 2**52 for one in _numbers(_constants(conditions)))

    def _truth(self, condition: c.Condition, values: _Values) -> bool | None:
        space = self.event_space
        kind, stream = values.get(space.type), None if space.stream is None else values.get(space.stream)
        event = Event(0, str(kind or ""), 0, values, None if stream is None else str(stream))
        truth = value_on(condition, {None: event})
        assert truth is None or isinstance(truth, bool)
        return truth

    # -- values --------------------------------------------------------------------------------------------------

    def _values(self, column: str, conditions: Sequence[c.Condition]) -> tuple[list[Value], bool]:
        """Values of a column that stand for all, and whether they surely do."""
        event_space = self.event_space
        many = len(frozenset().union(*(self._columns(one) for one in conditions)))
        named = column in (event_space.type, event_space.stream)
        kind = ValueKind.STRING if named else event_space.kinds[column]
        arrow = event_space.columns.get(column)
        constants = _constants(conditions)
        numbers = [*_numbers(constants), *_combined(conditions)]
        complete = True
        values: list[Value]
        match kind:
            case ValueKind.BOOLEAN:
                values = [True, False]
            case ValueKind.STRING:
                words, complete = self._words(column, conditions, many)
                values = [word for word in words if word or not named]
            case ValueKind.TIMESTAMP:
                texts = [one for one in constants if isinstance(one, str) and is_moment(one)]
                values = list(samples.candidate_moments(texts, many, samples.moment_unit(arrow)))
            case ValueKind.DURATION:
                unit = timedelta(microseconds=samples.moment_unit(arrow))
                sizes = [one // unit for one in constants if isinstance(one, timedelta)]
                most = LARGEST_INTEGER // samples.moment_unit(arrow)
                values = [size * unit for size in samples.integers(sizes, many + 1, -most, most)]
            case ValueKind.INTEGER:
                values = list(samples.integers(numbers, many, *samples.whole_limits(arrow)))
            case ValueKind.FLOAT:
                values = list(samples.floats(numbers, many))
                if arrow is not None and not pa.types.is_float64(arrow):
                    values = [v for v in values if _fits(v, arrow)]
                    complete = False
            case _:
                values = []
        return [*values, *([] if named or column in event_space.required else [None])], complete

    def _words(self, column: str, conditions: Sequence[c.Condition], many: int) -> tuple[list[str], bool]:
        own = [one for one in conditions if column in self._columns(one)]
        readers = list(dict.fromkeys(reader for one in own for reader in self._readers(column, one)))
        is_type = column == self.event_space.type
        words, complete = samples.sorts_of_strings(readers, self._mentioned if is_type else ())
        if many > 1 or any(not self._is_certain(one) for one in own):
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
                return [samples.StringAutomaton.length(value)]
            case c.In(c.Attribute(), items):
                return [samples.StringAutomaton(tuple(i.value)) for i in items if isinstance(i.value, str)]
            case c.In(c.Function(name="length"), items):
                return [samples.StringAutomaton.length(i.value) for i in items if _is_number(i.value)]
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


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _constants(conditions: Iterable[c.Condition]) -> list[Value]:
    return list(dict.fromkeys(n.value for one in conditions for n in walk(one) if isinstance(n, c.Literal)))


def _numbers(constants: Iterable[Value]) -> list[int | float]:
    return list(filter(_is_number, constants))


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
