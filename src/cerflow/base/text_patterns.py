"""Patterns of texts: what REGEXP reads, and LIKE as one of those.

REGEXP is the syntax of RE2, which comes with Arrow and needs time linear in the text, whatever the pattern. All that
evaluates a pattern evaluates it here, so that all agree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Ints, Mask
from cerflow.base.arrow_columns import array_of_texts, numbers_of, truths_of, values_taken
from cerflow.base.errors import QueryError, Span

#: The wildcards in `tokens`: any characters, and one.
MANY, ONE = object(), object()
#: As many texts are read by Arrow's functions; no text has more characters than the second.
_MANY_TEXTS, _CHARACTERS = 64, 2**31


def part_of_text(text: str, first: int, length: int | None = None) -> str | None:
    """SQL's substring: ``length`` characters (None: all) from the first-th on, counted from 1.

    Places before the text count, but have no characters. None for a negative length.
    """
    if length is None:
        return text[max(first - 1, 0) :]
    return text[max(first - 1, 0) : max(first - 1 + length, 0)] if length >= 0 else None


class Texts(Sequence[str]):
    """The texts of an array of Arrow without nulls; strings of Python are only made where one is asked for."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @cached_property
    def _strings(self) -> list[str]:
        found: list[str] = self.array.to_pylist()
        return found

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, number: Any) -> Any:
        return self._strings[number]

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)


def texts_in_place(column: pa.Array) -> Sequence[str]:
    """The texts of a column, which Arrow's functions read in place where there are many."""
    plain = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return Texts(column) if plain and len(column) >= _MANY_TEXTS and not column.null_count else column.to_pylist()


def lengths_of(texts: Sequence[str]) -> Ints:
    """How many characters each text has."""
    import pyarrow.compute as pc

    if isinstance(texts, Texts):
        return numbers_of(pc.utf8_length(texts.array).cast(pa.int64()))
    return np.array([len(text) for text in texts], np.int64)


def parts_of_texts(texts: Texts, first: int, length: int | None = None) -> Texts:
    """`part_of_text` of each text, for a length that is not negative."""
    import pyarrow.compute as pc

    stop = _CHARACTERS if length is None else min(max(first - 1 + length, 0), _CHARACTERS)
    return Texts(pc.utf8_slice_codeunits(texts.array, min(max(first - 1, 0), stop), stop))


def cased(texts: Sequence[str], function: str) -> Sequence[str]:
    """``lower`` or ``upper`` of each text."""
    import pyarrow.compute as pc

    change = str.lower if function == "lower" else str.upper
    if not isinstance(texts, Texts):
        return [change(text) for text in texts]
    changed = pc.call_function(f"ascii_{function}", [texts.array])
    others = pc.invert(pc.string_is_ascii(texts.array))
    # Beyond ASCII, one letter may become two.
    some = [change(text) for text in texts.array.filter(others).to_pylist()]
    return Texts(pc.replace_with_mask(changed, others, array_of_texts(some).cast(changed.type)) if some else changed)


def among(texts: Sequence[str], values: Collection[str]) -> Mask:
    """Which texts are among some values."""
    import pyarrow.compute as pc

    if not isinstance(texts, Texts):
        return np.array([text in values for text in texts], bool)
    return truths_of(pc.is_in(texts.array, value_set=array_of_texts([*values]).cast(texts.array.type)))


def found_in(texts: Sequence[str], expression: str) -> Mask:
    """In which texts a regular expression is found somewhere."""
    import pyarrow.compute as pc

    column = texts.array if isinstance(texts, Texts) else array_of_texts(texts)
    return truths_of(pc.match_substring_regex(column, expression))


def like(texts: Sequence[str], pattern: str) -> Mask:
    """Which texts a pattern of LIKE describes; how they begin and end is compared byte by byte, which is faster."""
    import pyarrow.compute as pc

    parts, expression = literal_parts(pattern), like_expression(pattern)
    if parts is None or not isinstance(texts, Texts):
        return found_in(texts, expression)
    if len(parts) == 1:
        return among(texts, parts)
    column, (first, *middle, last) = texts.array, parts
    if first == last == "" and len(middle) == 1:
        return truths_of(pc.match_substring(column, middle[0]))
    held = np.ones(len(column), np.bool_)
    if first:
        held &= truths_of(pc.starts_with(column, first))
    if last:
        held &= truths_of(pc.ends_with(column, last))
    if not middle:
        # Neither overlaps the other.
        least = len(first.encode()) + len(last.encode())
        return held & (numbers_of(pc.binary_length(column)) >= least) if first and last else held
    some = np.flatnonzero(held)
    held[some] = found_in(Texts(values_taken(column, some)), expression)
    return held


def check_regexp(pattern: str, span: Span | None = None) -> None:
    """Raise `QueryError` if a text is not a regular expression."""
    fault = _fault(pattern)
    if fault is not None:
        raise QueryError(
            f"this regular expression cannot be read: {fault}",
            span=span,
            hint="REGEXP has the syntax of RE2, without backreferences (\\1) and lookaround ((?=…), (?<!…)).",
        )


def check_like(pattern: str, span: Span | None = None) -> None:
    """Raise `QueryError` if a text cannot be a pattern of LIKE."""
    fault = _fault(like_expression(pattern))
    if fault is not None:
        raise QueryError(f"this pattern cannot be used: {fault}", span=span)


def _fault(expression: str) -> str | None:
    try:
        found_in([""], expression)
    except UnicodeEncodeError:
        return "it holds half of a character (a surrogate)"
    except pa.ArrowInvalid as error:
        # "Invalid regular expression: missing ): (a" repeats the pattern, which may be long.
        reason = str(error).removeprefix("Invalid regular expression: ")
        return reason if len(reason) <= 200 else reason[:200] + "…"
    return None


def like_expression(pattern: str) -> str:
    """The regular expression of the texts that a pattern of LIKE describes."""
    written = {MANY: ".*", ONE: "."}
    return rf"(?s)\A{''.join(re.escape(t) if isinstance(t, str) else written[t] for t in tokens(pattern))}\z"


def tokens(pattern: str) -> list[str | object]:
    """A pattern of LIKE as literal texts (none empty), `MANY` and `ONE`, in their order."""
    found: list[str | object] = []
    taken = iter(pattern)
    for c in taken:
        if c in "%_":
            wildcard = MANY if c == "%" else ONE
            if wildcard is ONE or not found or found[-1] is not MANY:
                found.append(wildcard)
            continue
        literal = next(taken, "\\") if c == "\\" else c
        if found and isinstance(found[-1], str):
            found[-1] += literal
        else:
            found.append(literal)
    return found


def literal_parts(pattern: str) -> list[str] | None:
    """The literal texts between the ``%`` of a pattern of LIKE; the first and the last text may be empty.

    None if there is a ``_`` in it.
    """
    parts, found = tokens(pattern), [""]
    if ONE in parts:
        return None
    for part in parts:
        if isinstance(part, str):
            found[-1] += part
        else:
            found.append("")
    return found
