"""Reads of registers in expressions of SREMO after ``&``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from cerflow.base.errors import QueryError
from cerflow.language import sremo as r
from cerflow.language.node import Node, fold_only
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels


@dataclass(frozen=True)
class Doubtful:
    """A read of a register after ``&``: the node that reads it, and the terminals on both sides that write it.

    The second is None where the other side only reads the register.
    """

    register: str
    read: Node
    first: r.Terminal
    second: r.Terminal | None


@dataclass
class _RegisterUse:
    """What a part does to registers: ``reads`` that see what was there before it, registers that it ``always`` writes,
    the first terminals that ``write`` each, and the registers that are ``doubtful`` after it.
    """

    reads: dict[str, Node] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    writes: dict[str, r.Terminal] = field(default_factory=dict)
    doubtful: dict[str, tuple[r.Terminal, r.Terminal | None]] = field(default_factory=dict)


def refuse_doubtful_reads(expression: r.Sremo) -> None:
    """Raise `QueryError` for a read, after ``&``, of a register that both sides write: they are two registers."""
    found = doubtful_read(expression)
    if found is not None:
        assert found.second is not None
        raise QueryError(
            f"register '{found.register}' is read after '&', both sides of which write it: {show(found.first)} and "
            f"{show(found.second)}",
            span=found.read.span,
            hint="Each side has a register of its own; give them different names to read one of them here.",
        )


def doubtful_read(expression: r.Sremo, *, one_sided: bool = False) -> Doubtful | None:
    """A read, after ``&``, of a register that both sides write, if there is one.

    With ``one_sided`` also of one that one side writes, while the other one reads what was there before.
    """
    found: list[Doubtful] = []
    fold_only(expression, r.Sremo, lambda _, current, parts: _of(current, parts, one_sided, found))
    return found[0] if found else None


def _of(current: r.Sremo, parts: list[_RegisterUse], one_sided: bool, found: list[Doubtful]) -> _RegisterUse:
    match current:
        case r.Terminal():
            registers = current.registers
            return _RegisterUse(
                condition_labels(current.condition), frozenset(registers), dict.fromkeys(registers, current)
            )
        case r.Concatenation() | r.AnyMatch() | r.NextMatch():
            return _in_order(parts, found)
        case r.Alternation():
            return _merged(parts, parts[0].always & parts[1].always)
        case r.Intersection():
            return _both(parts[0], parts[1], one_sided)
        case r.Star() | r.Plus() | r.Optional():
            if not isinstance(current, r.Optional):
                found += _read_after(parts[0], parts[0])
            return parts[0] if isinstance(current, r.Plus) else _merged(parts, frozenset())
        case r.Unordered():
            for part, other in permutations(parts, 2):
                found += _read_after(part, other)
            return _merged(parts, frozenset().union(*(part.always for part in parts)))
        case r.Complement():
            return _RegisterUse(parts[0].reads)
    return parts[0] if parts else _RegisterUse()


def _read_after(before: _RegisterUse, after: _RegisterUse) -> list[Doubtful]:
    read = after.reads
    return [Doubtful(x, read[x], *terminals) for x, terminals in before.doubtful.items() if x in read]


def _in_order(parts: Iterable[_RegisterUse], found: list[Doubtful]) -> _RegisterUse:
    whole = _RegisterUse()
    for part in parts:
        found += _read_after(whole, part)
        seen = {register: place for register, place in part.reads.items() if register not in whole.always}
        left = {register: pair for register, pair in whole.doubtful.items() if register not in part.always}
        whole = _RegisterUse(
            {**seen, **whole.reads},
            whole.always | part.always,
            {**part.writes, **whole.writes},
            {**left, **part.doubtful},
        )
    return whole


def _merged(parts: Sequence[_RegisterUse], always: frozenset[str]) -> _RegisterUse:
    whole = _RegisterUse(always=always)
    for part in parts:
        whole.reads |= part.reads
        whole.writes |= part.writes
        whole.doubtful |= part.doubtful
    return whole


def _both(left: _RegisterUse, right: _RegisterUse, one_sided: bool) -> _RegisterUse:
    whole = _merged((left, right), left.always | right.always)
    for one, other in ((right, left), (left, right)):
        for register, terminal in one.writes.items():
            if register in other.writes or (one_sided and register in other.reads):
                whole.doubtful[register] = (terminal, other.writes.get(register))
    return whole
