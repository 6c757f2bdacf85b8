"""Callbacks for calls in conditions, and for parts that must be a condition or a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cerflow.base.errors import QueryError, QuerySyntaxError, Span, nearest
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.grammar.grammars import Parsed, Piece, TreeBuilder, span_of
from cerflow.language.lexicon import BUILT_IN, quote_string
from cerflow.language.node import Node, walk_into

N = TypeVar("N", bound=Node)


class CallBuilder(TreeBuilder):
    """Functions, aggregates, tests on sets and predicates, and the checks of what stands as their arguments."""

    def condition(self, part: Parsed) -> c.Condition:
        """The part as a condition; an error if it is a value."""
        value = part.value
        if isinstance(value, c.Condition):
            return value
        if isinstance(value, c.Literal) and isinstance(value.value, bool):
            return c.Constant(value.value, span=value.span)
        if isinstance(value, c.Attribute) and value.label is None and part.name is not None and not part.name.reserved:
            # No text gives a literal without a place, by which `no_truth_in` finds it.
            return c.Comparison(Operator.EQ, value, c.Literal(True), span=value.span)
        raise _no_condition(span_of(part))

    def condition_at_hand(self, part: Parsed) -> c.Condition:
        """The part as a condition on the current event; an error if a name stands as a condition there."""
        return no_truth_in(self.condition(part))

    def value(self, part: Parsed) -> c.Expression:
        """The part as a value; an error if it is a condition."""
        value = part.value
        if isinstance(value, c.Expression):
            return value
        if isinstance(value, c.PredicateCall):
            near = nearest(value.name, BUILT_IN)
            raise QueryError(f"there is no function '{value.name}'", span=span_of(part), suggestion=near)
        raise QuerySyntaxError(
            "this is a condition, but a value is expected here", span=span_of(part), expected=("a value",)
        )

    def closed(self, part: Parsed) -> Parsed:
        """The part, if every attribute in it has its label; an error that names the first which has none."""
        for current in walk_into(no_truth_in(part.value), lambda n: not isinstance(n, c.Bracket)):
            match current:
                case c.Function(name, (c.LabelReference(None, span=place),)) if place == current.span:
                    reason, hint = f"outside a bracket {name} takes a label", f"write {name}(x)"
                case c.LabelReference(None):
                    reason = "EVENT means the current event, but there is none outside a bracket"
                    hint = "name a label instead"
                case c.Attribute(None, name, quoted=quoted):
                    reason = f"'{name}' needs a label here"
                    hint = f"write label.{name}, or {name}.attribute if it is a label"
                    if quoted:
                        hint = f"strings are in single quotes: {quote_string(name)}; in double quotes it is a name"
                case _:
                    continue
            raise QuerySyntaxError(reason, span=current.span, hint=hint)
        return part

    def call(self, children: Sequence[Piece]) -> Parsed:
        """``name(…)``: a function, an aggregate, a test on a set, or a registered predicate."""
        head, arguments = children[0], self.parts(children[1:])
        written = head.value if isinstance(head, Parsed) else str(head)
        quoted = isinstance(head, Parsed) and head.name is not None and head.name.quoted
        name = written.lower()
        if quoted or name not in BUILT_IN:
            # A name alone is a label, also in a bracket; in parentheses it is an attribute of the current event.
            given = tuple(self._label(a) if _may_be_label(a) else self.value(a) for a in arguments)
            return self.make(children, c.PredicateCall, written, given)
        if not arguments and name in ("position", "time"):
            # Those of the current event.
            return self.make(children, c.Function, name, (c.LabelReference(None, span=span_of(*children)),))
        c.check_arity(name, len(arguments), span_of(*children))
        if name in ("position", "time") or (name == "count" and arguments[0].name is not None):
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
        name = argument.name
        if name is None or (name.reserved and name.text.upper() != "EVENT"):
            word = f"'{name.text}' is a reserved word, but" if name else "here"
            hint = f'in double quotes it is a name: "{name.text}"' if name else None
            reason = f"{word} the name of a label is expected"
            raise QuerySyntaxError(reason, span=span_of(argument), hint=hint, expected=("a label",))
        return c.LabelReference(None if name.reserved else name.text, span=span_of(argument))


def _may_be_label(argument: Parsed) -> bool:
    """Whether an argument is a name alone, or EVENT; other reserved words can only be attributes."""
    name = argument.name
    return name is not None and (not name.reserved or name.text.upper() == "EVENT")


def no_truth_in(tree: N) -> N:
    """The tree, if no name stands as a condition in it, which it does only below DEFINE; else an error."""
    for current in walk_into(tree, lambda _: True):
        match current:
            case c.Comparison(_, c.Attribute(), c.Literal(True, span=None)):
                raise _no_condition(current.span)
    return tree


def _no_condition(span: Span | None) -> QuerySyntaxError:
    return QuerySyntaxError(
        "this is a value, but a condition is expected here",
        span=span,
        hint="compare it with something, as in x.price > 10",
        expected=("a condition",),
    )
