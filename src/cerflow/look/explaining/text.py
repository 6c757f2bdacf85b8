"""Explanations as text for people: sections with a heading, lines that fit a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cerflow.base import limits

Facts = dict[str, Any]
#: The columns that text may take; the command line sets those of its terminal.
WIDTH = ContextVar("WIDTH", default=102)

#: A space at which no line ends.
UNBROKEN = "\u00a0"


@dataclass(frozen=True)
class Told:
    """Facts in a form that JSON can hold, and the section of text that tells them.

    Without ``lines`` there is no section.
    """

    facts: Any
    title: str = ""
    lines: Sequence[str] = ()


def section(title: str, lines: Iterable[str]) -> str:
    """Lines under a heading."""
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)]) + "\n"


def in_lines(text: str, indent: int = 0) -> list[str]:
    """A text in lines that fit, ``indent`` columns to the right."""
    width = max(10, WIDTH.get() - 2 - indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(UNBROKEN, " ") for line in lines]


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Rows in two columns; a long first entry has a line of its own."""
    left = min(24, WIDTH.get() // 3, max((len(first) for first, _ in rows), default=0))
    lines: list[str] = []
    for first, second in rows:
        of_second = in_lines(second, left + 2)
        if len(first) > left:
            lines += in_lines(first)
        else:
            lines.append(f"{first:{left}}  {of_second.pop(0)}")
        lines += [" " * (left + 2) + line for line in of_second]
    return lines


def cut(rows: Sequence[tuple[str, str]], what: str) -> list[tuple[str, str]]:
    """The first rows, and how many there are beyond them."""
    if len(rows) <= limits.EXPLAINED_ENTRIES:
        return list(rows)
    return [*rows[: limits.EXPLAINED_ENTRIES], ("…", f"and {len(rows) - limits.EXPLAINED_ENTRIES} more {what}")]


def pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Rows one below the other, the second entry in brackets, to the right of a heading."""
    shown = (f"{first}  ({second})" if second else first for first, second in rows)
    return [f"  {line}" for text in shown for line in in_lines(text, 2)]


def short(text: str) -> str:
    """A text that fits a line with others."""
    return textwrap.shorten(text, 70, placeholder=" …")


def listed(names: Sequence[str]) -> str:
    """Names, or that there are none."""
    return ", ".join(names) or "none"


def relevant_lines(relevant: Facts) -> list[str]:
    """Which events are not left out, and why not fewer of them."""
    if relevant["condition"] is None:
        return in_lines(f"all: {'; '.join(relevant['reasons'])}")
    rows = [("only those with", relevant["condition"])]
    if relevant["reasons"]:
        rows.append(("of these all", "; ".join(relevant["reasons"])))
    return table(rows)
