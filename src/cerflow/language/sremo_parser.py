"""SREMO (spec §5): text to symbolic regular expressions with memory and output."""

from __future__ import annotations

from collections.abc import Sequence
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

__all__ = ["parse_sremo", "read_sremo"]


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
    return load_grammar("sremo", ("sremo_alone",), _SremoBuilder())


class _SremoBuilder(ConditionBuilder):
    """Callbacks for `sremo.lark`."""

    def sremo_alone(self, children: Sequence[Piece]) -> Parsed:
        return self.parts(children)[0]

    @staticmethod
    def _label(argument: Parsed) -> Parsed:
        name = argument.name
        if name is not None and name.reserved and name.text.upper() != "EVENT":
            return argument  # no register can be called so, but an attribute can
        return ConditionBuilder._label(argument)

    def terminal(self, children: Sequence[Piece]) -> Parsed:
        condition, *rest = self.parts(children)
        self.no_bracket_in(condition)
        # The event read is at hand, so attributes need no label here.
        return self._sremo(children, Terminal, self.condition(condition), **dict(part.value for part in rest))

    def mark(self, children: Sequence[Piece]) -> Parsed:
        names = self.parts(children)
        return self.part(children, ("label", names[0].value if names else MARK))

    # A rule of its own, so that the comma behind a register is not the one behind any other name.
    register = ConditionBuilder.name

    def into(self, children: Sequence[Piece]) -> Parsed:
        return self.part(children, ("registers", tuple(part.value for part in self.parts(children))))

    def epsilon(self, children: Sequence[Piece]) -> Parsed:
        return self._sremo(children, Epsilon)

    def empty(self, children: Sequence[Piece]) -> Parsed:
        return self._sremo(children, Empty)

    def concatenation(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Concatenation)

    def alternation(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Alternation)

    def intersection(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Intersection)

    def star(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Star)

    def plus(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Plus)

    def optional(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Optional)

    def complement(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Complement)

    def windowed(self, children: Sequence[Piece]) -> Parsed:
        return self._operator(children, Windowed)

    def any_match(self, children: Sequence[Piece]) -> Parsed:
        return self._sremo(children, AnyMatch, tuple(part.value for part in self.parts(children)))

    def next_match(self, children: Sequence[Piece]) -> Parsed:
        return self._sremo(children, NextMatch, tuple(part.value for part in self.parts(children)))

    def unordered(self, children: Sequence[Piece]) -> Parsed:
        return self._sremo(children, Unordered, tuple(part.value for part in self.parts(children)))

    def _operator(self, children: Sequence[Piece], cls: type[Any]) -> Parsed:
        return self._sremo(children, cls, *(part.value for part in self.parts(children)))

    def _sremo(self, children: Sequence[Piece], cls: Any, *values: Any, **named: Any) -> Parsed:
        # The marks of bare attributes end with their terminal.
        span = span_of(*children)
        return Parsed(cls(*values, **named, span=span), span.start, span.end)
