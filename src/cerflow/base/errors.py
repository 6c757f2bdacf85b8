"""Everything cerflow raises on purpose, all below `CerflowError`; most classes are also ones of Python's own errors."""

from __future__ import annotations

import difflib
import operator
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

__all__ = [
    "ArgumentError",
    "BadRecordError",
    "CerflowError",
    "InUseError",
    "InputError",
    "MemoryLimitError",
    "OutputError",
    "PerformanceWarning",
    "PictureError",
    "PredicateError",
    "QueryError",
    "QuerySyntaxError",
    "QueryWarning",
    "SnapshotError",
    "Span",
    "TimeLimitError",
    "TooManyMatchesError",
    "UnsupportedQueryError",
]


#: Joins the parts of a nested attribute (`cerflow.base.nested`). It looks like a dot, and is another character, since
#: a column may be called ``device.os``.
DOT = "\u2024"


def dotted(text: str) -> str:
    """A text for people, with plain dots in the names of nested attributes."""
    return text.replace(DOT, ".")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch ``[start, end)`` of characters in a query text."""

    start: int
    end: int


class CerflowError(Exception):
    """Root of all errors that cerflow raises on purpose."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(dotted(given) if isinstance(given, str) else given for given in arguments))


class _LocatedError(CerflowError):
    """An error about a query, which knows where in the text it arose.

    ``reason`` is the bare sentence; ``line`` and ``column`` count from 1 and are None when the query did not come
    from text; ``excerpt`` is the line with a caret below the place.
    """

    def __init__(self, reason: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = dotted(reason)
        self.hint = None if hint is None else dotted(hint)
        self.span = span
        self.line: int | None = None
        self.column: int | None = None
        self.excerpt: str | None = None

    def with_source(self, text: str | None) -> Self:
        """Fill in line, column and excerpt from the text of the query, if there is one; returns itself, for raise."""
        if text is not None and self.span is not None and self.line is None:
            start = min(self.span.start, len(text))
            before = text.rfind("\n", 0, start) + 1
            after = text.find("\n", start)
            line = text[before : len(text) if after < 0 else after]
            self.line = text.count("\n", 0, start) + 1
            self.column = start - before + 1
            width = max(1, min(self.span.end, before + len(line)) - start)
            # Long lines are cut around the place, so that the caret stays visible in a terminal.
            left = max(0, self.column - 61)
            shown = visible(line[left : left + 120])
            lead = "…" if left else ""
            pad = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1 - left])
            caret = " " * len(lead) + pad + "^" * max(1, min(width, len(shown) - (self.column - 1 - left)))
            self.excerpt = f"{lead}{shown}\n{caret}"
        return self

    def __str__(self) -> str:
        parts = [self.reason if self.line is None else f"line {self.line}, column {self.column}: {self.reason}"]
        if self.excerpt is not None:
            parts.append(self.excerpt)
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class QuerySyntaxError(_LocatedError, ValueError):
    """The text is not a query: where it went wrong and what was expected there (``expected``, readable names)."""

    def __init__(
        self, reason: str, *, span: Span | None = None, hint: str | None = None, expected: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason, span=span, hint=hint)
        self.expected = expected


class QueryError(_LocatedError, ValueError):
    """A name is unknown, a label is not bound, or types do not fit; ``suggestion`` is the nearest known name."""

    def __init__(
        self, reason: str, *, span: Span | None = None, hint: str | None = None, suggestion: str | None = None
    ) -> None:
        if suggestion is not None:
            hint = f"Did you mean '{suggestion}'?" + (f" {hint}" if hint else "")
        super().__init__(reason, span=span, hint=hint)
        self.suggestion = None if suggestion is None else dotted(suggestion)


class QueryWarning(_LocatedError, UserWarning):  # noqa: N818  # it is a warning
    """A probable mistake in a query. It is returned or warned of, not raised; ``str`` shows the position."""


class UnsupportedQueryError(_LocatedError, NotImplementedError):
    """The query has a meaning, but cannot be evaluated as it is; the hint suggests a change."""


class ArgumentError(CerflowError, TypeError, ValueError):
    """An argument of a function has the wrong type or a value that does not fit; the message names both."""


class InputError(CerflowError, ValueError):
    """The input as a whole cannot be used: a missing column, an unreadable file, no time where one is needed."""


class BadRecordError(InputError):
    """One event cannot be used; ``reason`` says why.

    ``row`` is its position in the input (counted from 0), or its values if the rows have no numbers.
    """

    def __init__(self, row: int | str, reason: str) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row = row
        self.reason = dotted(reason)


class OutputError(CerflowError, OSError):
    """The result cannot be written: the path is not suitable, the disk is full, or the file is also an input."""


class PictureError(CerflowError, RuntimeError):
    """A picture cannot be drawn: it would be too large to read, or the layout engine is not installed."""


class PredicateError(CerflowError, RuntimeError):
    """The function of a registered predicate has failed; its own exception is the cause (``__cause__``).

    ``predicate`` is the name of the predicate.
    """

    def __init__(self, reason: str, predicate: str | None = None) -> None:
        super().__init__(reason)
        self.predicate = predicate


class SnapshotError(CerflowError, ValueError):
    """A snapshot cannot be restored: damaged, of another version, or taken from another query."""


class InUseError(CerflowError, RuntimeError):
    """A recogniser was called while another call of it was running; nothing was done. ``what`` names the recogniser."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is in use: another thread, or a caller of this function, is inside 'push' or 'snapshot'. "
            "Give each thread its own, or let them take turns with a lock."
        )


class MemoryLimitError(CerflowError, MemoryError):
    """A push needs more memory than the caller or cerflow allows; the state is the same as before the push."""


class TimeLimitError(CerflowError, TimeoutError):
    """A run takes longer than the caller allowed."""


class TooManyMatchesError(CerflowError, OverflowError):
    """There are more matches than may be listed, or their number does not fit its column."""


class PerformanceWarning(UserWarning):
    """Something gives the right result, but slower than it might: a predicate that cannot be compiled."""


#: Control characters (a terminal obeys them) and those that turn the direction of writing, or break a line, as signs of
#: the same width.
_HIDDEN = (0x61C, 0x200E, 0x200F, *range(0x80, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    # Halves of characters cannot be written at all.
    **dict.fromkeys((*_HIDDEN, *range(0xD800, 0xE000)), 0xFFFD),
}


def visible(text: str) -> str:
    """A text of unknown origin, safe for a terminal: control characters are shown, not obeyed."""
    return text.translate(_VISIBLE)


#: Characters of a value in a message.
_SHOWN = 60


def shown(value: object) -> str:
    """A value for a message: in one line, and not all of a long one."""
    return cut_short(visible(" ".join(repr(value).split())))


def cut_short(text: str) -> str:
    """A text, or the beginning of one that is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def expect(given: object, kind: type | tuple[type, ...], what: str) -> None:
    """Raise `ArgumentError` for an argument of another kind; ``what`` says what it is and must be."""
    if not isinstance(given, kind):
        raise ArgumentError(f"{what}, not {shown(given)} of type {type(given).__name__}")


def at_least_one(given: object, what: str) -> int:
    """The argument if it is a whole number from 1 on; raises `ArgumentError`, ``what`` names it."""
    if not hasattr(given, "__index__"):
        expect(given, (), f"{what} must be a whole number")
    number: int = operator.index(given)  # type: ignore[arg-type]
    if number < 1:
        raise ArgumentError(f"{what} must be at least 1, not {number}")
    return number


def one_of(given: object, what: str, *choices: str) -> None:
    """Raise `ArgumentError` for an argument that is none of some choices; ``what`` names it."""
    if given not in choices:
        *others, last = map(repr, choices)
        raise ArgumentError(f"{what} must be {', '.join(others)} or {last}, not {shown(given)}")


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun in the right form; the plural is regular unless given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None if nothing is near; upper and lower case count as equal."""
    if not isinstance(name, str):
        return None
    names = sorted(set(known))
    by_folded = {n.casefold(): n for n in reversed(names)}
    found = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Collection[str], what: str = "columns") -> str:
    """The end of a message about a name that does not exist: the one that may be meant, or else all that exist."""
    near = nearest(name, known)
    if len(known) == 1 and any(set(",;|\t").intersection(other) for other in known):
        return f"; there is only '{', '.join(known)}': is the delimiter another one?"
    return f"; did you mean '{near}'?" if near else f"; the {what} are {', '.join(known)}"


class Located:
    """Errors about a query learn their place in its text."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, QueryError | UnsupportedQueryError):
            error.with_source(self.text)


@contextmanager
def noted(note: str) -> Iterator[None]:
    """Errors within the block have a note."""
    try:
        yield
    except CerflowError as error:
        error.add_note(note)
        raise


def warn(warning: Warning | str) -> None:
    """Give a warning about the line outside cerflow that called it, however deep in cerflow the reason is found.

    A text is that of a `QueryWarning`.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cerflow":
        level, frame = level + 1, frame.f_back
    warnings.warn(QueryWarning(warning) if isinstance(warning, str) else warning, stacklevel=level)
