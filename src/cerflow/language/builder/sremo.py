"""SREMO written in Python: ``read(this.type == "T").mark().into("r") >> read(this.value > label("r").value)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Unpack

from cerflow.base.errors import ArgumentError
from cerflow.language import sremo as r
from cerflow.language.builder.common import Expr, WindowArguments, checked_name, window
from cerflow.language.builder.conditions import AnyCondition, inner_condition
from cerflow.language.parser import read_sremo


def _operator(kind: type[r.Binary]) -> Callable[[SremoExpr, SremoExpr], SremoExpr]:
    return lambda one, two: SremoExpr(kind(one.tree, two.tree)) if isinstance(two, SremoExpr) else NotImplemented


class SremoExpr(Expr[r.Sremo]):
    """An expression of SREMO; ``>>`` concatenates, ``|``, ``&`` and ``~`` are alternation, intersection, complement."""

    __slots__ = ()
    _function = "sremo"

    __rshift__, __or__, __and__ = _operator(r.Concatenation), _operator(r.Alternation), _operator(r.Intersection)

    def __invert__(self) -> SremoExpr:
        return SremoExpr(r.Complement(self.tree))

    def then(self, other: SremoExpr) -> SremoExpr:
        """``e . f``, the same as ``e >> f``."""
        return SremoExpr(r.Concatenation(self.tree, *_trees((other,))))

    def star(self) -> SremoExpr:
        """``e*``."""
        return SremoExpr(r.Star(self.tree))

    def plus(self) -> SremoExpr:
        """``e+``."""
        return SremoExpr(r.Plus(self.tree))

    def optional(self) -> SremoExpr:
        """``e?``."""
        return SremoExpr(r.Optional(self.tree))

    def within(
        self,
        size: int | float | timedelta | None = None,
        attribute: str | None = None,
        **bound: Unpack[WindowArguments],
    ) -> SremoExpr:
        """``e WITHIN window``; the arguments are those of `window`."""
        return SremoExpr(r.Windowed(self.tree, window(size, attribute, **bound)))


class TerminalExpr(SremoExpr):
    """``[condition] …``: reads one event, and may mark it and store it in registers."""

    __slots__ = ()

    def mark(self) -> TerminalExpr:
        """``[c] MARK``: the event read goes into the complex event under the label ``event``."""
        return self.label(r.MARK)

    def label(self, name: str) -> TerminalExpr:
        """``[c] AS name``: the event read goes into the complex event under that label."""
        return TerminalExpr(replace(self._terminal, label=checked_name(name, "a label")))

    def into(self, *registers: str) -> TerminalExpr:
        """``[c] INTO register, …``: the event read is stored, in addition to registers named before."""
        names = tuple(checked_name(name, "a register") for name in registers)
        return TerminalExpr(replace(self._terminal, registers=self._terminal.registers + names))

    @property
    def _terminal(self) -> r.Terminal:
        assert isinstance(self.tree, r.Terminal)
        return self.tree


def read(condition: AnyCondition = True) -> TerminalExpr:
    """``[condition]``: reads one event that satisfies the condition; without one, any event."""
    return TerminalExpr(r.Terminal(inner_condition(condition)))


def sremo(text: str) -> SremoExpr:
    """An expression read from text, which may be part of a greater one that writes its registers."""
    tree = read_sremo(text)
    return TerminalExpr(tree) if isinstance(tree, r.Terminal) else SremoExpr(tree)


def epsilon() -> SremoExpr:
    """``EPSILON``: the empty string."""
    return SremoExpr(r.Epsilon())


def empty() -> SremoExpr:
    """``EMPTY``: no string at all."""
    return SremoExpr(r.Empty())


def any_match(*parts: SremoExpr) -> SremoExpr:
    """``any(e, …)``: skip-till-any-match."""
    return SremoExpr(r.AnyMatch(_trees(parts)))


def next_match(*parts: SremoExpr) -> SremoExpr:
    """``next(e, …)``: skip-till-next-match."""
    return SremoExpr(r.NextMatch(_trees(parts)))


def unordered(*parts: SremoExpr) -> SremoExpr:
    """``unordered(e, …)``: the operands in any order."""
    return SremoExpr(r.Unordered(_trees(parts)))


def _trees(parts: tuple[SremoExpr, ...]) -> tuple[r.Sremo, ...]:
    if not parts:
        raise ArgumentError("at least one operand is needed")
    for part in parts:
        if not isinstance(part, SremoExpr):
            raise ArgumentError(f"an expression of SREMO is expected here, not {type(part).__name__}")
    return tuple(part.tree for part in parts)
