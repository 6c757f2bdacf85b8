"""Messages on texts that are not in the language: the token found, and the tokens that are possible there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Any

from lark import Lark, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from cerflow.base.errors import QuerySyntaxError, Span
from cerflow.language.grammar.syntax_hints import few, hint_for
from cerflow.language.lexicon import CONTEXTUAL, RESERVED

_VALUE = {"NAME", "QUOTED", "NUMBER", "STRING", "MINUS", "TRUE", "FALSE", "NULL", "LPAR"}
_SHORT = ("CASE", "DISTINCT", "RESERVED_ATTRIBUTE", "FUNCTION_WORD", "REGISTER_COMMA", "STATEMENT_END", "DEFINE_KIND")
# Sets of terminals that have one name for people; tried in this order.
_GROUPS: tuple[tuple[set[str], str], ...] = (
    (
        {"NAME", "QUOTED", "LPAR", "EVENT", "NOT", "START", "STRICT", "NEXT", "NXT", "LAST", "MAX", "PROJECT"}
        | {"ANY", "AUTOMATON", "SREMO"},
        "a formula",
    ),
    (_VALUE | {"NOT"}, "a condition"),
    (_VALUE, "a value"),
    ({"LSQB", "LPAR", "BANG", "ANY", "NEXT", "UNORDERED", "EPSILON", "EMPTY"}, "an expression"),
    ({"NAME", "QUOTED"}, "a name"),
    ({"WORD", "QUOTED"}, "an attribute"),
    ({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "BARS"}, "an arithmetic operator"),
    ({"COMPARE", "MORETHAN"}, "a comparison"),
    ({"NUMBER"}, "a number"),
    ({"STRING"}, "a string"),
    ({"STRATEGY"}, "a strategy"),
    ({"UNIT"}, "a unit of time"),
)
_TOKEN = re.compile(r"\w+|<=|>=|<>|!=|==|&&|\|\||->|//|:\+|\.\.|.", re.DOTALL)
_CLOSED = {
    "'": (
        re.compile(r"'(?:[^']|'')*'(?!')"),
        "this string is not closed",
        "a quote inside a string is written twice: ''",
    ),
    '"': (re.compile(r'"(?:[^"]|"")*"(?!")'), "this quoted name is not closed", 'a quote inside is written twice: ""'),
    "/*": (re.compile(r"/\*.*?\*/", re.DOTALL), "this comment is not closed", "comments end with */"),
}
_SYMBOLS = set("()[]{}<>=!+-*/%.,;:|&?")


def explain_syntax(error: UnexpectedInput, text: str, lark: Lark, rule: str) -> QuerySyntaxError:
    """The error that ``lark`` raised on the text, read from ``rule``, in words: place, expected, nearest keyword."""
    before = _before(error, text, lark, rule)
    # The terminals that can really come next, those after reductions among them.
    accepted = before.accepts()
    names = _readable(accepted, lark)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return _at_end(text, error, names, begun=len(before.parser_state.state_stack) > 1)
    start = error.pos_in_stream
    assert start is not None
    for quote, (closed, reason, hint) in _CLOSED.items():
        if text.startswith(quote, start) and not closed.match(text, start):
            return QuerySyntaxError(reason, span=Span(start, len(text)), hint=hint)
    match = _TOKEN.match(text, start)
    assert match is not None
    found = match.group()
    if text[max(start - 1, 0) : start + 1] == "==":
        found, start = "==", start - 1
    span = Span(start, start + len(found))
    told = hint_for(found, text[:start], accepted, names)
    if found[0] not in _SYMBOLS and found[0] not in "'\"" and not (found[0].isalnum() or found[0] == "_"):
        return QuerySyntaxError(f"unexpected character {found[0]!r}", span=span, hint=told, expected=names)
    shown = "string" if found[0] == "'" else "quoted name" if found[0] == '"' else f"'{found}'"
    reason = f"unexpected {shown}, expected {_listed(few(names))}"
    return QuerySyntaxError(reason, span=span, hint=told, expected=names)


def _before(error: UnexpectedInput, text: str, lark: Lark, rule: str) -> Any:
    """The automaton in front of the token that did not fit.

    The state in the error is a later one: looking for a place for the token, the automaton has already closed what
    was open, and much of what could have stood there no longer can.
    """
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    again = lark.parse_interactive(text, start=rule)
    lexer: Any = again.lexer_thread
    with contextlib.suppress(UnexpectedInput):
        for token in lexer.lex(again.parser_state):
            if not ended and token.start_pos >= error.pos_in_stream:
                break
            again.feed_token(token)
    return again


def _at_end(text: str, error: UnexpectedToken, names: tuple[str, ...], *, begun: bool) -> QuerySyntaxError:
    if not begun:
        return QuerySyntaxError(
            f"the text is empty, expected {_listed(names)}", span=Span(len(text), len(text)), expected=names
        )
    end = error.token.end_pos
    where = len(text) if end is None else end
    return QuerySyntaxError(
        f"the text ends too early, expected {_listed(few(names))}", span=Span(where, where + 1), expected=names
    )


def _readable(accepted: set[str], lark: Lark) -> tuple[str, ...]:
    left = accepted.difference(_SHORT, {"$END"})
    end = ["the end"] if "$END" in accepted else []
    names = []
    for group, name in _GROUPS:
        if group <= left:
            names.append(name)
            left -= group
    signs, words = [], []
    for terminal in sorted(left):
        if terminal in ("DEFINE", "EVENTS") or terminal in RESERVED or terminal in CONTEXTUAL:
            words.append(terminal)
        else:
            pattern = lark.get_terminal(terminal).pattern
            signs.append(f"'{pattern.value}'" if isinstance(pattern, PatternStr) else terminal.lower())
    return (*names, *signs, *words, *end)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
