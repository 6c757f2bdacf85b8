"""From text to tree: runs Lark, and returns trees, or errors with their position.

Trees are built by callbacks while Lark's LALR automaton runs, so nothing recurses, however deep the text nests. Lark
is imported when a text is read, not with cerflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cerflow.base import limits
from cerflow.base.errors import ArgumentError, QueryError, QuerySyntaxError, Span
from cerflow.base.nested import joined
from cerflow.language.node import N

if TYPE_CHECKING:
    from lark import Lark, Token


@dataclass(slots=True)
class Parsed:
    """The result of a callback: a value and the stretch of text it was made from, parentheses included.

    ``name`` is there if the part is nothing but a name, perhaps ``quoted``, ``word`` if it is nothing but a reserved
    word; ``last`` is the right end of a comparison.
    """

    value: Any
    start_pos: int
    end_pos: int
    name: str | None = None
    quoted: bool = False
    word: str | None = None
    last: Parsed | None = None


#: The children of a callback: tokens and the parts of the rules below.
Piece: TypeAlias = "Parsed | Token"


def span_of(*pieces: Piece) -> Span:
    """The stretch of text from the first piece to the last."""
    start, end = pieces[0].start_pos, pieces[-1].end_pos
    assert start is not None
    assert end is not None
    return Span(start, end)


class TreeBuilder:
    """The callbacks that all grammars share."""

    @staticmethod
    def part(children: Sequence[Piece], value: Any) -> Parsed:
        """A part for the value, over the stretch of its children."""
        span = span_of(*children)
        return Parsed(value, span.start, span.end)

    @staticmethod
    def parts(children: Sequence[Piece]) -> list[Parsed]:
        """The parts among the children."""
        return [child for child in children if isinstance(child, Parsed)]

    def values(self, children: Sequence[Piece]) -> list[Any]:
        """The values of the parts among the children."""
        return [part.value for part in self.parts(children)]

    def make(self, children: Sequence[Piece], cls: Callable[..., Any], *values: Any, **named: Any) -> Parsed:
        """A part whose value is a node of the class, with its span."""
        return self.part(children, cls(*values, **named, span=span_of(*children)))

    def name(self, children: Sequence[Piece]) -> Parsed:
        """``NAME`` or ``"quoted"``; the value is the name itself."""
        (token,) = children
        assert not isinstance(token, Parsed)
        quoted = token.type == "QUOTED"
        name = token[1:-1].replace('""', '"') if quoted else str(token)
        if not name:
            raise QuerySyntaxError("a name cannot be empty", span=span_of(token), expected=("a name",))
        return replace(self.part(children, name), name=name, quoted=quoted)

    attribute_name = name

    def path(self, children: Sequence[Piece]) -> Parsed:
        """``device.os``; the value is the name of the nested attribute."""
        return self.part(children, joined(self.values(children)))

    def group(self, children: Sequence[Piece]) -> Parsed:
        """``(…)``: the part inside, over the stretch with the parentheses."""
        return self.part(children, *self.values(children))


#: Not a character: UTF-8 has no bytes for it, and undecodable bytes of a command line become such.
_SURROGATE = re.compile("[\ud800-\udfff]")


def refuse_surrogates(text: str) -> None:
    """Raise `QuerySyntaxError` for a text that is not UTF-8."""
    half = _SURROGATE.search(text)
    if half is not None:
        raise QuerySyntaxError(
            f"'\\u{ord(half[0]):04x}' is half of a character, or a byte that could not be decoded",
            span=Span(*half.span()),
            hint="Is the text UTF-8?",
        ).with_source(text)


def parse_from(lark: Lark, text: str, start: str, kind: type[N]) -> N:
    """Parse the text from a start rule, which gives trees of a kind.

    Raises `QuerySyntaxError` or `QueryError` with line, column and excerpt.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"the text to parse must be a string, not {type(text).__name__}")
    if len(text) > limits.QUERY_CHARACTERS:
        raise QuerySyntaxError(
            f"the text has {len(text):,} characters; at most {limits.QUERY_CHARACTERS:,} are allowed",
            hint="Long lists of values belong in the events, as an attribute, or into a registered predicate.",
        )
    refuse_surrogates(text)
    from lark import UnexpectedInput

    try:
        tree: N = lark.parse(text, start=start).value  # type: ignore[attr-defined]
    except UnexpectedInput as error:
        from cerflow.language.grammar.syntax_errors import explain_syntax

        raise explain_syntax(error, text, lark, start).with_source(text) from None
    except (QuerySyntaxError, QueryError) as error:
        raise error.with_source(text) from None
    return tree
