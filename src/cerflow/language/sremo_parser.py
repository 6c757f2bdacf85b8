"""SREMO (spec §5): text to symbolic regular expressions with memory and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from cerflow.language import sremo as r
from cerflow.language.grammar.condition_tree import ConditionBuilder
from cerflow.language.grammar.grammars import Parsed, Piece, parse_from, span_of
from cerflow.language.node import Node

if TYPE_CHECKING:
    from lark import Lark


def parse_sremo(text: str) -> r.Sremo:
    """Read an expression such as ``[type = 'T'] MARK INTO r . [value > r.value] AS high`` (spec §5).

    Raises `QuerySyntaxError` if the text is not in the language, and `QueryError` if it calls an unknown function or
    has an invalid regular expression; both with the position in the text.
    """
    return r.names_told_apart(read_sremo(text))


def read_sremo(text: str) -> r.Sremo:
    """The same for a part of an expression: which of its names are registers is not known yet."""
    return parse_from(_grammar(), text, "sremo_alone", r.Sremo)


@cache
def _grammar() -> Lark:
    from cerflow.language.grammar.kept_parsers import load_grammar

    return load_grammar("sremo", ("sremo_alone",), SremoBuilder())


_Callback = Callable[["SremoBuilder", Sequence[Piece]], Parsed]


def operator_rule(cls: type[Node]) -> _Callback:
    """The callback of a rule for an operator whose tree consists of what the rule consists of."""
    return lambda self, children: self.operator(children, cls)


def _of_several(cls: type[r.Sremo]) -> _Callback:
    return lambda self, children: self.settled(children, cls, tuple(part.value for part in self.parts(children)))


class SremoBuilder(ConditionBuilder):
    """Callbacks for `sremo.lark`, alone and in queries."""

    # A rule of its own, so that the comma after a register is not the one after any other name.
    register = ConditionBuilder.name

    epsilon, empty = operator_rule(r.Epsilon), operator_rule(r.Empty)
    concatenation, alternation = operator_rule(r.Concatenation), operator_rule(r.Alternation)
    joint, complement, windowed = operator_rule(r.Intersection), operator_rule(r.Complement), operator_rule(r.Windowed)
    star, plus, at_most_once = operator_rule(r.Star), operator_rule(r.Plus), operator_rule(r.Optional)
    any_match, next_match, unordered = _of_several(r.AnyMatch), _of_several(r.NextMatch), _of_several(r.Unordered)

    def sremo_alone(self, children: Sequence[Piece]) -> Parsed:
        """A text that is an expression."""
        return self.parts(children)[0]

    def terminal(self, children: Sequence[Piece]) -> Parsed:
        """``[c] AS label INTO registers``."""
        condition, *rest = self.parts(children)
        self.no_bracket_in(condition)
        # The event read is the current one, so attributes need no label here.
        return self.settled(
            children, r.Terminal, self.condition_at_hand(condition), **dict(part.value for part in rest)
        )

    def mark(self, children: Sequence[Piece]) -> Parsed:
        """``MARK`` or ``AS label``."""
        names = self.parts(children)
        return self.part(children, ("label", names[0].value if names else r.MARK))

    def into(self, children: Sequence[Piece]) -> Parsed:
        """``INTO register, …``."""
        return self.part(children, ("registers", tuple(part.value for part in self.parts(children))))

    def operator(self, children: Sequence[Piece], cls: type[Any]) -> Parsed:
        """A part for an operator on the parts among the children."""
        return self.settled(children, cls, *(part.value for part in self.parts(children)))

    def settled(self, children: Sequence[Piece], cls: Any, *values: Any, **named: Any) -> Parsed:
        """A part for a formula or expression: attributes of conditions inside are settled, so their marks end here."""
        span = span_of(*children)
        return Parsed(cls(*values, **named, span=span), span.start, span.end)
