"""Callbacks that turn the grammar of conditions (`condition.lark`) into trees, for CEQL and SREMO alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from cerflow.base import limits
from cerflow.base.errors import QueryError, QuerySyntaxError, Span, nearest
from cerflow.base.operators import Operator
from cerflow.base.text_patterns import check_like, check_regexp
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.language.grammar import numbers
from cerflow.language.grammar.grammars import Parsed, Piece, TreeBuilder, span_of
from cerflow.language.lexicon import BUILT_IN, INSTEAD, LARGEST_INTEGER, quote_string
from cerflow.language.node import Node, walk, walk_into
from cerflow.language.printer import show

_Callback = Callable[["ConditionBuilder", Sequence[Piece]], Parsed]


def _of(cls: type[Node], read: Callable[[ConditionBuilder, Parsed], Node]) -> _Callback:
    """An operator on the parts of its rule, each read as a condition or as a value."""
    return lambda self, children: self.make(children, cls, *(read(self, part) for part in self.parts(children)))


def _test(cls: type[c.Condition]) -> _Callback:
    """A test on values, perhaps with NOT before its name."""
    return lambda self, children: self.make(
        children, cls, *map(self.value, self.parts(children)), negated=_negated(children)
    )


def _constant(read: Callable[[Piece], str | bool | None]) -> _Callback:
    return lambda self, children: self.make(children, c.Literal, read(children[0]))


def _pattern(cls: type[c.Condition], check: Callable[[str, Span], None]) -> _Callback:
    """``value [NOT] LIKE 'pattern'``, and the like."""

    def test(self: ConditionBuilder, children: Sequence[Piece]) -> Parsed:
        pattern = _string(children[-1])
        check(pattern, span_of(children[-1]))
        return self.make(children, cls, self.value(self.parts(children)[0]), pattern, _negated(children))

    return test


class ConditionBuilder(TreeBuilder):
    """Conditions, expressions and windows."""

    # -- parts that must be a condition or a value

    def condition(self, part: Parsed) -> c.Condition:
        """The part as a condition; an error if it is a value."""
        value = part.value
        if isinstance(value, c.Condition):
            return value
        if isinstance(value, c.Literal) and isinstance(value.value, bool):
            return c.Constant(value.value, span=value.span)
        if isinstance(value, c.Attribute) and part.word is None:
            # A boolean one; the literal has no place in the text.
            return c.Comparison(Operator.EQ, value, c.Literal(True), span=value.span)
        truth = f"{show(value)} = TRUE or " if isinstance(value, c.Attribute) else ""
        raise QuerySyntaxError(
            "this is a value, but a condition is expected here",
            span=span_of(part),
            hint=f"compare it with something, as in {truth}x.price > 10",
            expected=("a condition",),
        )

    def value(self, part: Parsed) -> c.Expression:
        """The part as a value; an error if it is a condition."""
        value = part.value
        if isinstance(value, c.Expression):
            return value
        if isinstance(value, c.PredicateCall):
            hint = INSTEAD.get(value.name.lower())
            near = None if hint else nearest(value.name, BUILT_IN)
            hint = hint or (None if near else f"The functions are {', '.join(sorted(BUILT_IN))}.")
            raise QueryError(f"there is no function '{value.name}'", span=span_of(part), suggestion=near, hint=hint)
        raise QuerySyntaxError(
            "this is a condition, but a value is expected here", span=span_of(part), expected=("a value",)
        )

    def closed(self, part: Parsed) -> Parsed:
        """The part, if every attribute in it has its label; an error that names the first which has none."""
        for current in walk_into(part.value, lambda n: not isinstance(n, c.Bracket)):
            match current:
                case c.Function(name, (c.LabelReference(None, span=place),)) if place == current.span:
                    reason, hint = f"outside a bracket {name} takes a label", f"write {name}(x)"
                case c.LabelReference(None):
                    reason = "EVENT means the current event, but there is none outside a bracket"
                    hint = "name a label instead"
                case c.Attribute(None, name, quoted=quoted):
                    reason = f"'{name}' needs a label here"
                    hint = f"write label.{name}, or {name}.attribute if it is a label"
                    hint = "NaN counts as null: write … IS NULL" if name.lower() == "nan" else hint
                    if quoted:
                        hint = f"strings are in single quotes: {quote_string(name)}; in double quotes it is a name"
                case _:
                    continue
            raise QuerySyntaxError(reason, span=current.span, hint=hint)
        return part

    # -- conditions

    or_, and_, not_ = _of(c.Or, condition), _of(c.And, condition), _of(c.Not, condition)
    between, is_null = _test(c.Between), _test(c.IsNull)
    like, regexp = _pattern(c.Like, check_like), _pattern(c.Regexp, check_regexp)

    def some(self, children: Sequence[Piece]) -> Parsed:
        """``SOME x, y: c``."""
        *labels, inner = self.parts(children)
        condition = self.condition(inner)
        for current in walk(condition):
            if isinstance(current, c.Some):
                raise QuerySyntaxError(
                    "SOME is not allowed inside SOME",
                    span=current.span,
                    hint="one SOME may list several labels: SOME x, y: …",
                )
        return self.make(children, c.Some, tuple(label.value for label in labels), condition)

    def comparison(self, children: Sequence[Piece]) -> Parsed:
        """``a < b``."""
        left, right = self.parts(children)
        made = self.make(children, c.Comparison, _operator(children[1]), self.value(left), self.value(right))
        return replace(made, last=right)

    def chained(self, children: Sequence[Piece]) -> Parsed:
        """``a = b = c``: the neighbours compared, joined by AND."""
        before, right = self.parts(children)
        assert before.last is not None
        added = self.comparison((before.last, *children[1:]))
        return replace(self.make(children, c.And, before.value, added.value), last=right)

    def in_interval(self, children: Sequence[Piece]) -> Parsed:
        """``a [NOT] IN {low..high}``, where either end may be left out."""
        dots = next(i for i, child in enumerate(children) if child == "..")
        low, high = children[dots - 1], children[dots + 1]
        ends = (self.value(end) if isinstance(end, Parsed) else None for end in (low, high))
        return self.make(children, c.Between, self.value(self.parts(children)[0]), *ends, _negated(children))

    def in_(self, children: Sequence[Piece]) -> Parsed:
        """``a [NOT] IN (item, …)``."""
        operand, *items = self.parts(children)
        for item in items:
            if not isinstance(item.value, c.Literal):
                raise QuerySyntaxError(
                    "only numbers, strings, TRUE, FALSE and NULL can be in the list after IN",
                    span=span_of(item),
                    expected=("a literal",),
                )
        return self.make(children, c.In, self.value(operand), tuple(i.value for i in items), _negated(children))

    def case(self, children: Sequence[Piece]) -> Parsed:
        """``CASE [value] WHEN … THEN value … [ELSE value] END``."""
        parts = self.parts(children)
        for part in parts:
            self.no_bracket_in(part, "CASE")
        otherwise: c.Expression = c.Literal(None)
        if any(not isinstance(child, Parsed) and child.type == "ELSE" for child in children):
            otherwise = self.value(parts.pop())
        operand = self.value(parts.pop(0)) if isinstance(children[1], Parsed) else None
        size = 0 if operand is None else sum(1 for _ in walk(operand))
        # It is written out at every WHEN, so nested ones would grow without end.
        if size > 1 and size * len(parts) > limits.CASE_NODES:
            raise QuerySyntaxError(
                "the value after CASE is too large for this number of WHEN",
                span=span_of(children[1]),
                hint="write CASE WHEN … = … THEN …",
            )
        for when, then in reversed([*zip(parts[::2], parts[1::2])]):
            if operand is None:
                condition = self.condition(when)
            else:
                condition = c.Comparison(Operator.EQ, operand, self.value(when), span=span_of(when))
            otherwise = c.If(condition, self.value(then), otherwise, span=span_of(*children))
        return self.part(children, otherwise)

    def bracket(self, children: Sequence[Piece]) -> Parsed:
        """``label[condition]``."""
        label, inner = self.parts(children)
        self.no_bracket_in(inner)
        return self.make(children, c.Bracket, label.value, self.condition(inner))

    def no_bracket_in(self, part: Parsed, place: str = "a bracket") -> None:
        """An error if there is a bracket ``x[…]``, or SOME, in the part; ``place`` is where the part stands."""
        # CASE has been asked already.
        for current in walk_into(part.value, lambda n: not isinstance(n, c.If)):
            if isinstance(current, c.Bracket | c.Some):
                what = "SOME" if isinstance(current, c.Some) else "a bracket"
                raise QuerySyntaxError(f"{what} is not allowed inside {place}", span=current.span)

    # -- calls

    def call(self, children: Sequence[Piece]) -> Parsed:
        """``name(…)``: a function, an aggregate, a test on a set, or a registered predicate."""
        head, arguments = children[0], self.parts(children[1:])
        written = head.value if isinstance(head, Parsed) else str(head)
        name = written.lower()
        if (isinstance(head, Parsed) and head.quoted) or name not in BUILT_IN:
            # A name alone is a label, also in a bracket; in parentheses it is an attribute of the current event.
            given = tuple(self._label(a) if _may_be_label(a) else self.value(a) for a in arguments)
            return self.make(children, c.PredicateCall, written, given)
        if not arguments and name in ("position", "time"):
            # Those of the current event.
            return self.make(children, c.Function, name, (c.LabelReference(None, span=span_of(*children)),))
        c.check_arity(name, len(arguments), span_of(*children))
        if name in ("position", "time") or (name == "count" and (arguments[0].name or arguments[0].word)):
            values: tuple[c.Expression, ...] = (self._label(arguments[0]),)
        else:
            values = tuple(map(self.value, arguments))
        kind = c.Aggregate if name in c.AGGREGATES else c.SetTest if name in c.SET_TESTS else c.Function
        return self.make(children, kind, name, values if kind is c.Function else values[0])

    def distinct(self, children: Sequence[Piece]) -> Parsed:
        """``count(distinct value)``."""
        function, argument = self.parts(children)
        if function.value.lower() != "count":
            raise QuerySyntaxError(
                f"only count takes DISTINCT, not {function.value}", span=span_of(*children), expected=("count",)
            )
        return self.make(children, c.Aggregate, c.COUNT_DISTINCT, self.value(argument))

    @staticmethod
    def _label(argument: Parsed) -> c.LabelReference:
        """An argument that must be a label, or EVENT for the current event."""
        if not _may_be_label(argument):
            word = argument.word
            reason = f"'{word}' is a reserved word, but the name" if word else "here the name"
            hint = f'in double quotes it is a name: "{word}"' if word else None
            raise QuerySyntaxError(
                f"{reason} of a label is expected", span=span_of(argument), hint=hint, expected=("a label",)
            )
        return c.LabelReference(argument.name, span=span_of(argument))

    # -- values

    def arithmetic(self, children: Sequence[Piece]) -> Parsed:
        """``a + b`` and the like."""
        left, right = self.parts(children)
        return self.make(children, c.Arithmetic, str(children[1]), self.value(left), self.value(right))

    def joined_strings(self, children: Sequence[Piece]) -> Parsed:
        """``a || b``."""
        sides = [self.value(part) for part in self.parts(children)]
        for side in sides:
            if isinstance(side, c.Literal) and not isinstance(side.value, str | None):
                raise QuerySyntaxError("'||' joins strings", span=side.span, hint="between conditions write OR")
        return self.make(children, c.Function, "||", tuple(sides))

    negative = _of(c.Negative, value)

    def number(self, children: Sequence[Piece]) -> Parsed:
        """A number, to which a minus directly before it belongs."""
        return self.make(children, c.Literal, numbers.number_of(children[-1], "-" * (len(children) - 1), over=children))

    def duration_literal(self, children: Sequence[Piece]) -> Parsed:
        """A duration as a value, to which a minus directly before it belongs."""
        (duration,) = self.parts(children)
        sign = 1 if len(children) == 1 else -1
        return self.make(children, c.Literal, timedelta(microseconds=sign * duration.value))

    string, null = _constant(lambda token: _string(token)), _constant(lambda _: None)
    boolean = _constant(lambda token: str(token).upper() == "TRUE")

    def bare(self, children: Sequence[Piece]) -> Parsed:
        """A name alone: an attribute of the current event, unless it turns out to be a label in an argument."""
        (name,) = self.parts(children)
        return replace(self.make(children, c.Attribute, None, name.value, quoted=name.quoted), name=name.name)

    def bare_reserved(self, children: Sequence[Piece]) -> Parsed:
        """A reserved word as an attribute; EVENT in an argument is the current event."""
        word = str(children[0])
        return replace(self.make(children, c.Attribute, None, word), word=word)

    def attribute(self, children: Sequence[Piece]) -> Parsed:
        """``label.attribute``, or in a bracket or terminal ``attribute.field``."""
        label, attribute = self.parts(children)
        return self.make(children, c.Attribute, label.value, attribute.value, doubtful=True)

    # -- windows

    def count_window(self, children: Sequence[Piece]) -> Parsed:
        """``n EVENTS``."""
        return self.make(
            children, CountWindow, numbers.positive_integer(children[0], "the number of events in a window")
        )

    def duration(self, children: Sequence[Piece]) -> Parsed:
        """``number unit``; the value is the microseconds so far."""
        amount, unit = children[-2:]
        return self.part(children, numbers.written_duration(amount, str(unit)))

    def interval(self, children: Sequence[Piece]) -> Parsed:
        """``INTERVAL 'number' unit``; the value is the microseconds."""
        _, amount, unit = children
        return self.part(children, numbers.written_duration(amount, str(unit), _string(amount).strip()))

    def longer_duration(self, children: Sequence[Piece]) -> Parsed:
        """A duration and another ``number unit``."""
        total = self.parts(children)[0].value + self.duration(children).value
        if total > LARGEST_INTEGER:
            raise QuerySyntaxError("this duration is too long", span=span_of(*children))
        return self.part(children, total)

    def window(self, children: Sequence[Piece]) -> Parsed:
        """A duration that is complete."""
        microseconds = self.parts(children)[0].value
        if microseconds <= 0:
            raise QuerySyntaxError("a window must be larger than zero", span=span_of(*children))
        return self.make(children, DurationWindow, microseconds)

    def attribute_window(self, children: Sequence[Piece]) -> Parsed:
        """``size [attribute]``."""
        size = numbers.number_of(children[0], "")
        if size <= 0:
            raise QuerySyntaxError("a window must be larger than zero", span=span_of(children[0]))
        (attribute,) = self.parts(children)
        return self.make(children, AttributeWindow, size, attribute.value)


def _negated(children: Sequence[Piece]) -> bool:
    return any(not isinstance(child, Parsed) and child.type == "NOT" for child in children)


def _operator(token: Piece) -> Operator:
    return Operator.NE if token == "<>" else Operator(str(token))


def _string(token: Piece) -> str:
    return str(token)[1:-1].replace("''", "'")


def _may_be_label(argument: Parsed) -> bool:
    """Whether an argument is a name alone, or EVENT; other reserved words can only be attributes."""
    return argument.name is not None or (argument.word or "").upper() == "EVENT"
