"""Unknown values, as terms of the solver Z3 (extra ``cerflow[decide]``).

Values that are only compared are whole numbers to the solver: the place of a float among all floats, of a text among
the texts of the query. That is exact, as only their order counts. Floats that are computed with are floats of IEEE 754,
and whole numbers beyond 64 bits are null. For anything else operations raise `OpenValueError`.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pyarrow as pa
import z3

from cerflow.base.events import Value, microseconds_since_epoch, parsed_moment
from cerflow.base.graphs import reached
from cerflow.base.operators import MIRRORED, NEGATED, RELATIONS, Operator
from cerflow.base.schema import ValueKind
from cerflow.language.condition import Arithmetic, Attribute, Literal, Negative
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import Node, walk
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.logic.conditions.register_values import WORD, Joined, Word
from cerflow.theory.deciding.samples import MOMENT_LIMITS, first_integer, moment_unit, place_of, whole_limits
from cerflow.theory.deciding.witnesses import EventSpace

#: Between two texts of a query there are at least this many others, unless one is the other with a few zeros after it.
TEXTS_BETWEEN = 1 << 40
_FLOAT = z3.Float64()
#: Of integers, and of floats, where the result is rounded to the nearest.
_SIGNS: Mapping[str, Callable[[Any, Any], Any]]
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
YES, NO = z3.BoolVal(True), z3.BoolVal(False)


class ValueSort(StrEnum):
    """How the number of a term is to be read; terms of one sort are compared by their numbers."""

    NULL = "null"
    INTEGER = "integer"
    PLACE = "float, by its place among all floats"
    FLOAT = "float"
    TEXT = "text, by its place"
    MOMENT = "microseconds since 1970"
    DURATION = "microseconds"
    TRUTH = "0 or 1"


_FLOATS = (ValueSort.FLOAT, ValueSort.PLACE)


@dataclass(frozen=True)
class Term:
    """A value: whether it is null (a formula of Z3), else a number. ``constant`` is the value of a literal.

    Formulas of Z3 are equal if they are written alike, and so are terms.
    """

    sort: ValueSort
    null: Any
    number: Any
    constant: Value = field(default=None, compare=False)

    def simplified(self) -> Term:
        """The same term, written shorter."""
        return replace(self, null=z3.simplify(self.null), number=z3.simplify(self.number))


NULL = Term(ValueSort.NULL, YES, z3.IntVal(0))


@dataclass(frozen=True, eq=False)
class SymbolicEvent:
    """An event at a position: a term for each column, and what always holds of these."""

    position: Any
    values: Mapping[str, Term]
    domain: Any


class OpenValueError(Exception):
    """The solver cannot say a value."""


class SymbolicValues:
    """The values of events of one event space, for the conditions in some ``roots``."""

    def __init__(self, event_space: EventSpace, roots: Iterable[Node], mentioned: frozenset[str]) -> None:
        self.event_space = event_space
        nodes = [n for root in roots for n in walk(root)]
        self.constants: list[Value] = list(dict.fromkeys(n.value for n in nodes if isinstance(n, Literal)))
        texts = {c for c in self.constants if isinstance(c, str)} | {t for t in mentioned if not t.startswith("\0")}
        texts |= {n.type for n in nodes if isinstance(n, TypeTest)}
        texts |= {n.stream for n in nodes if isinstance(n, TypeTest | StreamTest) and n.stream is not None}
        self.texts = sorted({"", *texts})
        self.text_places = _text_places(self.texts)
        self.mentioned = mentioned
        computing = (Arithmetic, Negative, Joined, Word)
        read = {a.name for n in nodes if isinstance(n, computing) for a in walk(n) if isinstance(a, Attribute)}
        computed = {event_space.kinds.get(name) for name in read | event_space.computed}
        #: Whether some floats are computed with, and whether some numbers are.
        self.floating = ValueKind.FLOAT in computed
        self.computing = self.floating or ValueKind.INTEGER in computed

    # -- events --------------------------------------------------------------------------------------------------

    def event(self, position: Any, name: object) -> SymbolicEvent:
        """A new event; ``name`` tells its variables from those of others."""
        space = self.event_space
        values: dict[str, Term] = {}
        domain = []
        for column, kind in self.columns().items():
            arrow = space.columns.get(column)
            narrow = kind is ValueKind.FLOAT and arrow is not None and not pa.types.is_float64(arrow)
            if narrow or kind in (ValueKind.DECIMAL, ValueKind.OTHER):
                continue
            role = column in (space.type, space.stream)
            required = role or column in space.required
            null = NO if required else z3.Bool(f"{column} is null @{name}")
            sort, low, high = self._domain(kind, arrow)
            if sort is ValueSort.FLOAT:
                number = z3.FP(f"{column}@{name}", _FLOAT)
                domain.append(z3.Not(z3.fpIsNaN(number)))
            else:
                number = z3.Int(f"{column}@{name}")
                # No event has the empty string as its type, and no stream as its name.
                domain.append(number >= low + role)
                if high is not None:
                    domain.append(number <= high)
                if kind is ValueKind.TIMESTAMP and (unit := moment_unit(arrow)) > 1:
                    number *= unit
            values[column] = Term(sort, null, number)
        return SymbolicEvent(position, values, z3.And(*domain) if domain else YES)

    def columns(self) -> dict[str, ValueKind]:
        """The kinds of all columns that conditions read, and of those with types and streams."""
        space = self.event_space
        columns = {space.column(name): kind for name, kind in space.kinds.items()}
        return {**columns, **{c: ValueKind.STRING for c in (space.type, space.stream) if c is not None}}

    def _domain(self, kind: ValueKind, arrow: pa.DataType | None) -> tuple[ValueSort, int, int | None]:
        """How values of a kind are read as numbers, and the least and the greatest of these."""
        match kind:
            case ValueKind.FLOAT:
                sort = ValueSort.FLOAT if self.floating else ValueSort.PLACE
                return sort, place_of(-math.inf), place_of(math.inf)
            case ValueKind.BOOLEAN:
                return ValueSort.TRUTH, 0, 1
            case ValueKind.STRING:
                return ValueSort.TEXT, 0, None
            case ValueKind.TIMESTAMP:
                unit = moment_unit(arrow)
                return ValueSort.MOMENT, -(-MOMENT_LIMITS[0] // unit), MOMENT_LIMITS[1] // unit
            case ValueKind.DURATION:
                return ValueSort.DURATION, -LARGEST_INTEGER, LARGEST_INTEGER
        return (ValueSort.INTEGER, *whole_limits(arrow))

    def constant(self, value: Value) -> Term:
        """The value of a literal."""
        match value:
            case None:
                return NULL
            case bool():
                return Term(ValueSort.TRUTH, NO, z3.IntVal(int(value)), value)
            case int():
                return Term(ValueSort.INTEGER, NO, z3.IntVal(value), value)
            case float() if self.floating:
                return Term(ValueSort.FLOAT, NO, z3.FPVal(value, _FLOAT), value)
            case float():
                return Term(ValueSort.PLACE, NO, z3.IntVal(place_of(value)), value)
            case str():
                return Term(ValueSort.TEXT, NO, z3.IntVal(self.text_places[value]), value)
            case datetime.timedelta():
                return Term(ValueSort.DURATION, NO, z3.IntVal(value // datetime.timedelta(microseconds=1)), value)
        raise OpenValueError

    def _alike(self, left: Term, right: Term) -> tuple[Term, Term]:
        """Two terms with numbers of one sort."""
        left, right = self._read_beside(left, right.sort), self._read_beside(right, left.sort)
        if left.sort is right.sort or ValueSort.NULL in (left.sort, right.sort):
            return left, right
        raise OpenValueError

    def _read_beside(self, term: Term, other: ValueSort) -> Term:
        """A literal as it reads beside a value of another sort; other terms as they are."""
        if term.sort is ValueSort.INTEGER and isinstance(term.constant, int) and other in _FLOATS:
            return self.constant(float(term.constant))
        if isinstance(term.constant, str) and other is ValueSort.MOMENT:
            return Term(ValueSort.MOMENT, NO, z3.IntVal(microseconds_since_epoch(parsed_moment(term.constant))))
        return term

    def computed(self, sign: str, left: Term, right: Term) -> Term:
        """The value of ``left sign right``."""
        left, right = self._alike(left, right)
        null = z3.Or(left.null, right.null)
        if ValueSort.NULL in (left.sort, right.sort):
            return NULL
        if left.sort is ValueSort.FLOAT:
            if sign not in _SIGNS:
                raise OpenValueError
            number = _SIGNS[sign](left.number, right.number)
            missing = z3.fpIsNaN(number)
            if sign == "/":
                missing = z3.Or(missing, z3.fpIsZero(right.number))
            return Term(ValueSort.FLOAT, z3.Or(null, missing), number)
        if left.sort is not ValueSort.INTEGER or sign not in ("+", "-", "*"):
            raise OpenValueError
        if sign == "*" and left.constant is None and right.constant is None:
            raise OpenValueError  # products of unknowns are beyond what is decided
        return _within_64_bits(null, _SIGNS[sign](left.number, right.number))

    def compared(self, relation: Operator, left: Term, right: Term) -> tuple[Any, Any]:
        """Whether two terms compare so, and whether they do not; raises where that cannot be said."""
        if ValueSort.NULL in (left.sort, right.sort):
            return NO, NO
        null = z3.Or(left.null, right.null)
        holds = self._thresholds(relation, left, right)
        if holds is None:
            left, right = self._alike(left, right)
            # Zeros of both signs are equal; for Z3 == is being the same.
            floats = {Operator.EQ: z3.fpEQ, Operator.NE: z3.fpNEQ} if left.sort is ValueSort.FLOAT else {}
            holds = floats.get(relation, RELATIONS[relation])(left.number, right.number)
        return z3.And(z3.Not(null), holds), z3.And(z3.Not(null), z3.Not(holds))

    def _thresholds(self, relation: Operator, left: Term, right: Term) -> Any | None:
        """The comparison of a whole number with a float that is written in the query: the number is rounded first."""
        if right.sort is ValueSort.INTEGER and isinstance(left.constant, float):
            return self._thresholds(MIRRORED[relation], right, left)
        if left.sort is not ValueSort.INTEGER or not isinstance(right.constant, float):
            return None
        least, beyond = (
            first_integer(-LARGEST_INTEGER, LARGEST_INTEGER, right.constant, strict) for strict in (False, True)
        )
        at_least, greater = left.number >= least, left.number >= beyond
        holds = {Operator.GE: at_least, Operator.GT: greater, Operator.EQ: z3.And(at_least, z3.Not(greater))}
        return holds[relation] if relation in holds else z3.Not(holds[NEGATED[relation]])


def chosen_term(condition: Any, then: Term, otherwise: Term) -> Term:
    """One of two terms, as a condition holds or not."""
    if then.sort is ValueSort.NULL:
        return replace(otherwise, null=z3.Or(condition, otherwise.null), constant=None)
    if otherwise.sort is ValueSort.NULL:
        return replace(then, null=z3.Or(z3.Not(condition), then.null), constant=None)
    if then.sort is not otherwise.sort:
        raise OpenValueError
    null = z3.If(condition, then.null, otherwise.null)
    return Term(then.sort, null, z3.If(condition, then.number, otherwise.number))


def _within_64_bits(null: Any, number: Any) -> Term:
    beyond = z3.Or(number > LARGEST_INTEGER, number < -LARGEST_INTEGER)
    return Term(ValueSort.INTEGER, z3.Or(null, beyond), number)


def absolute(term: Term) -> Term:
    """The absolute value."""
    if term.sort is ValueSort.FLOAT:
        return Term(term.sort, term.null, z3.fpAbs(term.number))
    if term.sort is ValueSort.INTEGER:
        return Term(term.sort, term.null, z3.If(term.number < 0, -term.number, term.number))
    raise OpenValueError


def low_or_high(term: Term, high: bool) -> Term:
    """See `cerflow.logic.conditions.register_values.Word`."""
    if term.sort is ValueSort.FLOAT:
        zero = z3.FPVal(0.0, _FLOAT)
        return Term(ValueSort.FLOAT, NO, zero if high else z3.If(term.null, zero, term.number))
    size = absolute(term).number
    part = size / WORD if high else size % WORD
    return Term(ValueSort.INTEGER, NO, z3.If(term.null, 0, z3.If(term.number < 0, -part, part)))


def joined_words(high: Term, low: Term) -> Term:
    """See `cerflow.logic.conditions.register_values.Joined`."""
    if low.sort is ValueSort.FLOAT:
        return low
    if high.sort is not ValueSort.INTEGER or low.sort is not ValueSort.INTEGER:
        raise OpenValueError
    return _within_64_bits(low.null, high.number * WORD + low.number)


def _text_places(texts: Sequence[str]) -> dict[str, int]:
    """Numbers for texts, so far apart as there are other texts between them."""
    places = {texts[0]: 0}
    for low, high in pairwise(texts):
        added = high.removeprefix(low)
        few = added != high and not added.strip("\0")
        places[high] = places[low] + (len(added) if few else TEXTS_BETWEEN)
    return places


def variables_of(formula: Any) -> list[Any]:
    """The free constants of a formula of Z3."""
    known = {formula.get_id(): formula}

    def parts(number: int) -> list[int]:
        below = known[number].children()
        known.update((part.get_id(), part) for part in below)
        return [part.get_id() for part in below]

    found = (known[number] for number in reached([formula.get_id()], parts))
    return [one for one in found if z3.is_const(one) and one.decl().kind() == z3.Z3_OP_UNINTERPRETED]
