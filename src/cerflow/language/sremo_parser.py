"""SREMO (spec §5): text to symbolic regular expressions with memory and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from lark import Lark

from cerflow.language.condition_tree import ConditionBuilder
from cerflow.language.grammars import Parsed, Piece, load_grammar, parse_from, span_of
from cerflow.language.sremo import (
    MARK,
    Alternation,
    AnyMatch,
    Complement,
    Concatenation,
    Empty,
    Epsilon,
    Intersection,
    NextMatch,
    Optional,
    Plus,
    Sremo,
    Star,
    Terminal,
    Unordered,
    Windowed,
    names_told_apart,
)

__all__ = ["SremoBuilder", "parse_sremo", "read_sremo"]


def parse_sremo(text: str) -> Sremo:
    """Read an expression such as ``[type = 'T'] MARK INTO r . [value > r.value] AS high`` (spec §5).

    Raises `QuerySyntaxError` where the text is not in the language, `QueryError` where it is but calls an unknown
    function or holds a regular expression that cannot be read; both with the place in the text.
    """
    return names_told_apart(read_sremo(text))


def read_sremo(text: str) -> Sremo:
    """The same for a part of an expression: which of its names are registers is not known yet."""
    tree: Sremo = parse_from(_grammar(), text, "sremo_alone")
    return tree


@cache
def _grammar() -> Lark:
    return load_grammar("sremo", ("sremo_alone",), SremoBuilder())


_Callback = Callable[["SremoBuilder", Sequence[Piece]], Parsed]


def _operator(cls: type[Sremo]) -> _Callback:
    return lambda self, children: self.operator(children, cls)


def _of_several(cls: type[Sremo]) -> _Callback:
    return lambda self, children: self.settled(children, cls, tuple(part.value for part in self.parts(children)))


class SremoBuilder(ConditionBuilder):
    """Callbacks for `sremo.lark`, alone and in queries."""

    # A rule of its own, so that the comma after a register is not the one after any other name.
    register = ConditionBuilder.name

    epsilon, empty = _operator(Epsilon), _operator(Empty)
    concatenation, alternation, joint = _operator(Concatenation), _operator(Alternation), _operator(Intersection)
    star, plus, at_most_once = _operator(Star), _operator(Plus), _operator(Optional)
    complement, windowed = _operator(Complement), _operator(Windowed)
    any_match, next_match, unordered = _of_several(AnyMatch), _of_several(NextMatch), _of_several(Unordered)

    def sremo_alone(self, children: Sequence[Piece]) -> Parsed:
        """A text that is an expression."""
        return self.parts(children)[0]

    def terminal(self, children: Sequence[Piece]) -> Parsed:
        """``[c] AS label INTO registers``."""
        condition, *rest = self.parts(children)
        self.no_bracket_in(condition)
        # The event read is the current one, so attributes need no label here.
        return self.settled(children, Terminal, self.condition_at_hand(condition), **dict(part.value for part in rest))

    def mark(self, children: Sequence[Piece]) -> Parsed:
        """``MARK`` or ``AS label``."""
        names = self.parts(children)
        return self.part(children, ("label", names[0].value if names else MARK))

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
