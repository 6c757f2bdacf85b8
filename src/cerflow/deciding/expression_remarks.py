"""Probable mistakes in expressions of SREMO: ends that mark nothing, registers that nothing writes."""

from __future__ import annotations

from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass

from cerflow.analysis.register_reads import never_written
from cerflow.errors import Span, nearest
from cerflow.language import sremo as r
from cerflow.language.node import Node, fold, walk


@dataclass(frozen=True)
class Remark:
    """A sentence about a place in the text of a formula (None: about the whole)."""

    text: str
    span: Span | None


def registers_never_written(expression: r.Sremo) -> Iterator[Remark]:
    """A remark on every register of an expression of SREMO that is read and nowhere written."""
    written = {register for n in walk(expression) if isinstance(n, r.Terminal) for register in n.registers}
    for register, place in never_written(expression).items():
        near = nearest(register, written)
        meant = f"did you mean '{near}'?" if near else f"a terminal writes it with INTO {register}"
        yield Remark(
            f"register '{register}' is read but never written, so conditions on it are false; {meant}", place.span
        )


@dataclass(frozen=True)
class _LastParts:
    """How strings of an expression of SREMO may end: with a marked event, with one of some unmarked parts, or empty."""

    marked: bool
    unmarked: tuple[r.Sremo, ...] = ()
    empty: bool = False


def unmarked_ends(expression: r.Sremo) -> list[Remark]:
    """A remark on every part that may be last, if none of them marks its event."""
    ends: _LastParts = fold(expression, _ends)
    if ends.marked:
        return []
    return [
        Remark(
            "this query can never match: a match ends with a marked event, but this part may read its last event and "
            "marks nothing; put MARK or AS label after the atom that completes a match",
            part.span,
        )
        for part in dict.fromkeys(ends.unmarked)
    ]


def _ends(current: Node, below: abc.Sequence[_LastParts]) -> _LastParts:
    unmarked = tuple(part for one in below for part in one.unmarked)
    match current:
        case r.Epsilon():
            return _LastParts(marked=False, empty=True)
        case r.Empty():
            # Without any string there is nothing to say about marks.
            return _LastParts(marked=True)
        case r.Terminal():
            return _LastParts(marked=True) if current.label is not None else _LastParts(False, (current,))
        case r.Complement():
            return _LastParts(False, (current,), empty=True)
        case r.Star() | r.Optional():
            return _LastParts(below[0].marked, unmarked, empty=True)
        case r.Concatenation() | r.AnyMatch() | r.NextMatch():
            last = below[-1]
            for before in reversed(below[:-1]):
                if not last.empty:
                    break
                last = _LastParts(last.marked or before.marked, last.unmarked + before.unmarked, before.empty)
            return last
        case r.Intersection():
            return _LastParts(all(b.marked for b in below), unmarked, all(b.empty for b in below))
    # Of alternatives and of operands in any order each may be last.
    return _LastParts(any(b.marked for b in below), unmarked, any(b.empty for b in below))
