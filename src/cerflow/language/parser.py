"""CEQL (spec §2 to §4) and SREMO (spec §5): text to formulas, conditions, queries and expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cerflow.base import limits
from cerflow.base.errors import ArgumentError, QueryError, QuerySyntaxError
from cerflow.base.units import DURATION_UNITS
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language import sremo as r
from cerflow.language.automaton_json import automaton_from_json
from cerflow.language.condition import Attribute, Condition, Expression, LabelReference, TruthValue
from cerflow.language.event_kinds import refuse_twice, with_kinds, written_out
from cerflow.language.grammar.condition_tree import ConditionBuilder
from cerflow.language.grammar.grammars import Parsed, Piece, parse_from, span_of
from cerflow.language.grammar.numbers import positive_integer
from cerflow.language.node import Node, transform

if TYPE_CHECKING:
    from lark import Lark


#: What a text of CEQL may be that is not a program, in which a ";" is not always an operator.
_CEQL = ("query_alone", "formula_alone", "condition_alone", "condition_inside", "value_alone", "value_inside")


def parse_query(text: str) -> s.Select:
    """Read a query, ``SELECT … WHERE …`` (spec §4), perhaps after definitions of event kinds (spec §11).

    Raises `QuerySyntaxError` if the text is not in the language, and `QueryError` if it calls an unknown function or
    has an invalid regular expression; both with the position in the text.
    """
    return parse_from(_grammar(_CEQL), text, "query_alone", s.Select)


def parse_statements(text: str) -> s.Statements:
    """Read definitions and a query, ``DEFINE … AS SELECT … ; SELECT …`` (spec §10); errors as for `parse_query`."""
    return parse_from(_grammar(("statements",)), text, "statements", s.Statements)


def duration_in_microseconds(duration: timedelta | str | None) -> int | None:
    """A duration, given as such or as text (``"30 minutes"``), in microseconds; None for None.

    Raises `ValueError` for text that is not a duration, and for a duration that is not positive.
    """
    if duration is None:
        return None
    if isinstance(duration, str):
        with suppress(QuerySyntaxError):
            match parse_formula(f"A WITHIN {duration}"):
                case f.Within(_, f.DurationWindow(microseconds)):
                    return microseconds
        units = ", ".join(unit.lower() for unit in DURATION_UNITS)
        raise ArgumentError(
            f"'{duration}' is not a duration; it is a number above zero with a unit ({units}), such as '30 minutes'"
        )
    if duration <= timedelta(0):
        raise ArgumentError(f"a duration must be above zero, not {duration}")
    return duration // timedelta(microseconds=1)


def parse_formula(text: str) -> f.Formula:
    """Read a formula (spec §2), perhaps after ``DEFINE kind AS condition;``; errors as for `parse_query`."""
    return parse_from(_grammar(_CEQL), text, "formula_alone", f.Formula)


def parse_condition(text: str, *, bare_attributes: bool = False) -> Condition:
    """Read a condition (spec §3) as after FILTER; errors as for `parse_query`.

    With ``bare_attributes`` attributes need no label, as inside ``x[…]``.
    """
    return parse_from(_grammar(_CEQL), text, "condition_inside" if bare_attributes else "condition_alone", Condition)


def parse_expression(text: str, *, bare_attributes: bool = False) -> Expression:
    """Read a value such as ``x.price * 2`` (spec §3); otherwise as `parse_condition`."""
    return parse_from(_grammar(_CEQL), text, "value_inside" if bare_attributes else "value_alone", Expression)


def parse_sremo(text: str) -> r.Sremo:
    """Read an expression such as ``[type = 'T'] MARK INTO r . [value > r.value] AS high`` (spec §5).

    Errors as for `parse_query`.
    """
    return r.names_told_apart(read_sremo(text))


def read_sremo(text: str) -> r.Sremo:
    """The same for a part of an expression: which of its names are registers is not known yet."""
    return parse_from(_grammar(("sremo",)), text, "sremo", r.Sremo)


@cache
def _grammar(starts: Sequence[str]) -> Lark:
    from cerflow.language.grammar.kept_parsers import load_grammar

    return load_grammar(starts, _CeqlBuilder())


_Callback: TypeAlias = "Callable[[_CeqlBuilder, Sequence[Piece]], Parsed]"


def _operator(cls: type[Node]) -> _Callback:
    """The callback of a rule for an operator whose tree consists of what the rule consists of."""
    return lambda self, children: self.make(children, cls, *self.values(children))


def _of_several(cls: type[r.Sremo]) -> _Callback:
    return lambda self, children: self.make(children, cls, tuple(self.values(children)))


def _clause(name: str) -> _Callback:
    """The callback of a clause with one part, by the name of its field in the query."""
    return lambda self, children: self.part(children, {name: self.values(children)[0]})


def _projection(kind: s.ProjectionKind) -> _Callback:
    """The callback of what SELECT reports."""
    return lambda self, children: self.part(
        children, {"projection": s.Projection(kind, tuple(self.values(children)), span=span_of(*children))}
    )


class _CeqlBuilder(ConditionBuilder):
    """Callbacks for `ceql.lark` and `sremo.lark`."""

    within, unless, without = _operator(f.Within), _operator(f.Unless), _operator(f.Without)
    not_followed_by, start = _operator(f.NotFollowedBy), _operator(f.Start)
    disjunction, all_, intersection = _operator(f.Disjunction), _operator(f.All), _operator(f.Conjunction)
    strict_sequence, sequence = _operator(f.StrictSequence), _operator(f.Sequence)
    as_, rename, any_event = _operator(f.As), _operator(f.Rename), _operator(f.AnyEvent)
    definition = _operator(s.Definition)
    iteration, strict_iteration = _operator(f.Iteration), _operator(f.StrictIteration)

    epsilon, empty = _operator(r.Epsilon), _operator(r.Empty)
    concatenation, alternation = _operator(r.Concatenation), _operator(r.Alternation)
    joint, complement, windowed = _operator(r.Intersection), _operator(r.Complement), _operator(r.Windowed)
    star, plus, at_most_once = _operator(r.Star), _operator(r.Plus), _operator(r.Optional)
    any_match, next_match, unordered = _of_several(r.AnyMatch), _of_several(r.NextMatch), _of_several(r.Unordered)

    # -- texts that are not queries

    def condition_alone(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, self.condition(self.closed(self.parts(children)[0])))

    def condition_inside(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, self.condition(self.parts(children)[0]))

    def value_alone(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, self.value(self.closed(self.parts(children)[0])))

    def value_inside(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, self.value(self.parts(children)[0]))

    def kinds(self, children: Sequence[Piece]) -> Parsed:
        """``DEFINE name AS condition, name AS condition``: the names and conditions as they are written."""
        parts = self.parts(children)
        found = []
        for name, condition in zip(parts[::2], parts[1::2]):
            self.no_bracket_in(condition, "the condition of an event kind")
            # The only event there is has no label, so dots lead to fields.
            own = transform(self.condition(condition), lambda n: n.as_field if isinstance(n, Attribute) else n)
            found.append((name.value, span_of(name), own))
        return self.part(children, found)

    def above(self, children: Sequence[Piece]) -> Parsed:
        parts = self.parts(children)
        return replace(parts[-1], value=[one for part in parts for one in part.value])

    @staticmethod
    def _kinds(parts: Sequence[Parsed], known: Mapping[str, Condition] | None = None) -> dict[str, Condition]:
        """The conditions of the kinds that the parts and those above them define, with kinds above written out."""
        kinds = dict(known or {})
        for name, span, condition in (one for part in parts for one in part.value):
            refuse_twice(name, kinds, span)
            kinds[name] = written_out(condition, kinds)
        return kinds

    # -- formulas

    def event_type(self, children: Sequence[Piece]) -> Parsed:
        *stream, name = self.values(children)
        return self.make(children, f.EventType, name, *stream)

    def not_event(self, children: Sequence[Piece]) -> Parsed:
        event, *conditions = self.parts(children)
        return self.make(children, f.NotEvent, event.value, *(self.condition(self.closed(c)) for c in conditions))

    def filter(self, children: Sequence[Piece]) -> Parsed:
        operand, condition = self.parts(children)
        return self.make(children, f.Filter, operand.value, self.condition(self.closed(condition)))

    def repetition(self, children: Sequence[Piece]) -> Parsed:
        """``φ?``, ``φ{2,3}`` and ``φ:{2,3}``."""
        operand, *times = self.parts(children)
        least, most = times[0].value if times else (0, 1)
        return self.make(children, f.Repetition, operand.value, least, most, children[1] == ":{")

    def times(self, children: Sequence[Piece]) -> Parsed:
        """``2``, ``2,``, ``,3`` and ``2,3``: the least and the greatest number of times."""
        least, most = (None if child == "," else _times(child) for child in (children[0], children[-1]))
        return self.part(children, (least or 0, most))

    def automaton(self, children: Sequence[Piece]) -> Parsed:
        """``AUTOMATON 'JSON'``."""
        text, span = str(children[1])[1:-1].replace("''", "'"), span_of(*children)
        try:
            read = automaton_from_json(text, partial(parse_condition, bare_attributes=True))
        except QueryError as error:
            error.span = span
            raise
        # Places within a condition are none of the query.
        return self.part(children, transform(read, lambda current: replace(current, span=span)))

    def regular(self, children: Sequence[Piece]) -> Parsed:
        """``SREMO(e)``, the registers of which are known now."""
        return self.part(children, r.names_told_apart(r.Regular(*self.values(children), span=span_of(*children))))

    def selection(self, children: Sequence[Piece]) -> Parsed:
        *by, operand = self.values(children)
        return self.make(children, f.Selection, _strategy(children[0]), operand, *by)

    def compared(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, tuple(LabelReference(p.value, span=span_of(p)) for p in self.parts(children)))

    def project(self, children: Sequence[Piece]) -> Parsed:
        *labels, operand = self.values(children)
        return self.make(children, f.Project, tuple(labels), operand)

    # -- expressions of SREMO

    # A rule of its own, so that the comma after a register is not the one after any other name.
    register = ConditionBuilder.name

    def terminal(self, children: Sequence[Piece]) -> Parsed:
        """``[c] AS label INTO registers``."""
        condition, *rest = self.parts(children)
        self.no_bracket_in(condition)
        # The event read is the current one, so attributes need no label here.
        read = self.condition(condition)
        return self.make(children, r.Terminal, read, **dict(part.value for part in rest))

    def mark(self, children: Sequence[Piece]) -> Parsed:
        """``MARK`` or ``AS label``."""
        return self.part(children, ("label", *(self.values(children) or (r.MARK,))))

    def into(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, ("registers", tuple(self.values(children))))

    # -- queries

    def statements(self, children: Sequence[Piece]) -> Parsed:
        *above, query = self.parts(children)
        kinds: dict[str, Condition] = {}
        definitions: dict[str, s.Definition] = {}
        for part in above:
            if isinstance(part.value, s.Definition):
                refuse_twice(part.value.name, kinds.keys() | definitions.keys(), part.value.span)
                definitions[part.value.name] = replace(part.value, select=with_kinds(part.value.select, kinds))
                continue
            kinds = self._kinds([part], kinds)
            for name, span, _ in part.value:
                refuse_twice(name, definitions, span)
        return self.make(children, s.Statements, tuple(definitions.values()), with_kinds(query.value, kinds))

    def query_alone(self, children: Sequence[Piece]) -> Parsed:
        """A query or formula, perhaps below definitions of event kinds."""
        *kinds, alone = self.parts(children)
        return self.part(children, with_kinds(alone.value, self._kinds(kinds)))

    formula_alone = query_alone

    def query(self, children: Sequence[Piece]) -> Parsed:
        # Every clause comes as its fields of Select with their values, the formula as itself.
        clauses: dict[str, Any] = {}
        for part in self.parts(children):
            clauses.update(part.value if isinstance(part.value, dict) else {"formula": part.value})
        return self.part(children, s.Select(**clauses, span=span_of(*children)))

    def strategy(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, dict(zip(("strategy", "by"), (_strategy(children[0]), *self.values(children)))))

    def everything(self, children: Sequence[Piece]) -> Parsed:
        for part in self.parts(children):
            if isinstance(part.value, s.LabelItem):
                raise QuerySyntaxError(
                    f"* reports all labels, so only values may accompany it, not the label '{part.value.label}'",
                    span=span_of(part),
                )
        return _projection(s.ProjectionKind.ALL)(self, children)

    nothing, items = _projection(s.ProjectionKind.NONE), _projection(s.ProjectionKind.ITEMS)

    def label_item(self, children: Sequence[Piece]) -> Parsed:
        label, *attributes = self.values(children)
        return self.make(children, s.LabelItem, label, tuple(attributes))

    def expression_item(self, children: Sequence[Piece]) -> Parsed:
        given, name = self.parts(children)
        self.no_bracket_in(self.closed(given), "a computed column")
        expression = TruthValue(given.value) if isinstance(given.value, Condition) else given.value
        return self.make(children, s.ExpressionItem, expression, name.value)

    def unnamed_item(self, children: Sequence[Piece]) -> Parsed:
        """A label, or a value without AS, which has a name of its own if it is an attribute or an aggregate of one."""
        (given,) = self.parts(children)
        value = given.value
        if given.name is not None and isinstance(value, Attribute):
            return self.make(children, s.LabelItem, value.name)
        self.no_bracket_in(self.closed(given), "a computed column")
        name = None if isinstance(value, Condition) else s.column_name(value)
        if name is None:
            raise QuerySyntaxError(
                "a computed column needs a name", span=span_of(*children), hint="Write the name after AS: … AS name."
            )
        return self.make(children, s.ExpressionItem, value, name)

    def count_item(self, children: Sequence[Piece]) -> Parsed:
        function, *name = self.parts(children)
        if function.value.lower() != "count":
            raise QuerySyntaxError(
                f"only COUNT takes *, not {function.value}", span=span_of(*children), expected=("COUNT(*)",)
            )
        return self.make(children, s.CountItem, name[0].value if name else "count")

    def streams(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, {"streams": tuple(self.values(children))})

    def partition(self, children: Sequence[Piece]) -> Parsed:
        names, spans = zip(*self.values(children))
        return self.part(children, {"partition": names, "key_spans": spans})

    def key(self, children: Sequence[Piece]) -> Parsed:
        names = self.parts(children)
        return self.part(children, (tuple(name.value for name in names), tuple(map(span_of, names))))

    query_window, consume = _clause("window"), _clause("consume")

    def consumption(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, s.Consumption(str(children[0]).upper()))

    def limit(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, {"limit": positive_integer(children[1], "the number after LIMIT")})


def _times(token: Piece) -> int:
    """The number in a token that says how often something is repeated."""
    text = str(token)
    if not text.isdecimal() or int(text) > limits.REPETITIONS:
        raise QuerySyntaxError(
            f"{text} is not a number of repetitions",
            span=span_of(token),
            expected=(f"an integer from 0 to {limits.REPETITIONS:,}",),
        )
    return int(text)


def _strategy(token: Piece) -> f.Strategy:
    word = str(token).upper()
    return f.Strategy.NEXT if word == "NXT" else f.Strategy(word)
