"""Windows inside formulas: the start of the complex event in a register, a test at every later event of it."""

from __future__ import annotations

from dataclasses import replace

from cerflow.automata.conditions import guarded
from cerflow.automata.fragment import Fragment, track
from cerflow.automata.guards import InWindow, Measure, Stored
from cerflow.automata.registers import RegisterFile
from cerflow.automata.transducer import Accumulation, Register, Transition, Write
from cerflow.language.condition import Attribute, IsNull
from cerflow.language.formula import AttributeWindow, Window

__all__ = ["restrict"]


def restrict(operand: Fragment, window: Window, registers: RegisterFile) -> Fragment:
    """``φ WITHIN window``: the measure grows along the stream, so every marked event is tested against the first."""
    start = registers.add(Register(Accumulation.VALUE, 1, "start of window", window))
    within = InWindow(Stored(start, 0), window)

    def step(begun: bool, t: Transition) -> tuple[bool, Transition]:
        if not t.labels:
            return begun, t
        if begun:
            return True, guarded(t, [within])
        known = [IsNull(Attribute(None, window.attribute), True)] if isinstance(window, AttributeWindow) else []
        begin = Write(start, (Measure(window),), fresh=True)
        return True, replace(guarded(t, known), writes=(*t.writes, begin))

    return track(operand, False, step)[0]
