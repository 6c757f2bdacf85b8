"""Everything cerflow raises on purpose.

::

    CerflowError
    ├── QuerySyntaxError      (SyntaxError-like; also ValueError)   the text is not in the language
    ├── QueryError            (also ValueError)                     the text is, but names or types do not fit
    ├── UnsupportedQueryError (also NotImplementedError)            it has a meaning, but cannot be evaluated like this
    ├── InputError            (also ValueError)                     the events as a whole cannot be read
    │   └── BadRecordError    (also ValueError)                     one event cannot be used
    ├── PredicateError        (also RuntimeError)                   a function that the user registered has failed
    ├── SnapshotError         (also ValueError)                     a snapshot does not fit this query or version
    └── QueryWarning          (also UserWarning)                    something that is probably not meant; not raised

and warns of (all are UserWarnings)::

    PerformanceWarning                                              it works, but slower than it might
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "BadRecordError",
    "CerflowError",
    "InputError",
    "PerformanceWarning",
    "PredicateError",
    "QueryError",
    "QuerySyntaxError",
    "QueryWarning",
    "SnapshotError",
    "Span",
    "UnsupportedQueryError",
    "nearest",
]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch ``[start, end)`` of characters in a query text."""

    start: int
    end: int


class CerflowError(Exception):
    """Root of all errors that cerflow raises on purpose."""


class _LocatedError(CerflowError):
    """An error about a query, which knows where in the text it arose.

    ``reason`` is the bare sentence; ``line`` and ``column`` count from 1 and are None when the query did not come
    from text; ``excerpt`` is the line with a caret below the place.
    """

    def __init__(self, reason: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.span = span
        self.line: int | None = None
        self.column: int | None = None
        self.excerpt: str | None = None

    def with_source(self, text: str) -> _LocatedError:
        """Fill in line, column and excerpt from the query text; returns itself, so it can be raised directly."""
        if self.span is not None and self.line is None:
            start = min(self.span.start, len(text))
            before = text.rfind("\n", 0, start) + 1
            after = text.find("\n", start)
            line = text[before : len(text) if after < 0 else after]
            self.line = text.count("\n", 0, start) + 1
            self.column = start - before + 1
            width = max(1, min(self.span.end, before + len(line)) - start)
            # Long lines are cut around the place, so that the caret stays visible in a terminal.
            left = max(0, self.column - 61)
            shown = line[left : left + 120]
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
        self.suggestion = suggestion


class QueryWarning(_LocatedError, UserWarning):  # noqa: N818  # it is a warning
    """Something in a query that is probably not meant. It is handed out, not raised; ``str`` shows the place."""


class UnsupportedQueryError(_LocatedError, NotImplementedError):
    """The query has a meaning, but cannot be evaluated as it is; the hint says what would make it evaluable."""


class InputError(CerflowError, ValueError):
    """The input as a whole cannot be used: a missing column, an unreadable file, no time where one is needed."""


class BadRecordError(InputError):
    """One event cannot be used; ``reason`` says why.

    ``row`` is its position in the input (counted from 0), or its values where nobody has numbered the rows.
    """

    def __init__(self, row: int | str, reason: str) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row = row
        self.reason = reason


class PredicateError(CerflowError, RuntimeError):
    """The function of a registered predicate has failed; its own exception is the cause (``__cause__``).

    ``predicate`` is the name of the predicate.
    """

    def __init__(self, reason: str, predicate: str | None = None) -> None:
        super().__init__(reason)
        self.predicate = predicate


class SnapshotError(CerflowError, ValueError):
    """A snapshot cannot be restored: damaged, of another version, or taken from another query."""


class PerformanceWarning(UserWarning):
    """Something gives the right result, but slower than it might: a predicate that cannot be compiled."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None if nothing is near; upper and lower case count as equal."""
    names = sorted(set(known))
    by_folded = {n.casefold(): n for n in reversed(names)}
    found = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
