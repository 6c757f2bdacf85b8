"""Diagrams of transducers, in the notation of the papers: ``test ∧ atoms | labels ↓ writes`` on the arrows.

An event that is left out has the label set ∅, so a loop that skips events reads ``TRUE | ∅``. A write ``r0 := price``
replaces the content of the register; other writes add to it: ``r0 max= price``, ``r0 ∪= {…}``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.automata.model import transducer as model
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition, Write
from cerflow.language.condition import Condition, Expression, Or, PredicateCall
from cerflow.language.formula import UNNAMED
from cerflow.language.lexicon import quote_name
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import AllRows, Shown, Stored
from cerflow.look.pictures.diagram import Arrow, Diagram, Line, Piece, Vertex

_ADDS = {
    Accumulation.VALUE: ":=",
    Accumulation.MIN: "min=",
    Accumulation.MAX: "max=",
    Accumulation.SAME: "same=",
    Accumulation.SET: "∪=",
}


def show_condition(condition: Condition | Expression, registers: Sequence[Register]) -> str:
    """A guard, or an expression on the current event or on registers, as text.

    A register with one field is shown by its name, and ``each r0`` is every row of a collection.
    """

    def name(current: Node) -> Node:
        if isinstance(current, PredicateCall):
            # A bare attribute alone would be shown as a label.
            return Shown(f"{current.name}({', '.join(map(show, current.arguments))})")
        if not isinstance(current, Stored):
            return current
        register = registers[current.register]
        if isinstance(current, AllRows):
            return Shown(f"r{current.register}")
        field = "" if register.fields == 1 else f".{current.field}"
        every = "each " if register.keeps is Accumulation.SET else ""
        return Shown(f"{every}r{current.register}{field}")

    return show(transform(condition, name))


def show_guard(t: Transition, registers: Sequence[Register]) -> str:
    """The test and the atoms of a transition, joined by ∧; TRUE without any."""
    parts = [*conjuncts(t.test), *t.atoms]
    shown = [show_condition(part, registers) for part in parts]
    if len(parts) > 1:
        shown = [f"({text})" if isinstance(part, Or) else text for part, text in zip(parts, shown)]
    return " ∧ ".join(shown) or "TRUE"


def show_labels(labels: frozenset[str]) -> str:
    """A label set; ``type()`` stands for the type of the event read, ``hidden()`` for labels that are not reported,
    • for the label without a name."""
    if not labels:
        return "∅"
    names = {model.TYPE_LABEL: "type()", model.HIDDEN_LABEL: "hidden()", UNNAMED: "•"}
    return "{" + ", ".join(names.get(label) or quote_name(label) for label in sorted(labels)) + "}"


def show_write(write: Write, registers: Sequence[Register]) -> str:
    """A write to a register, as text."""
    keeps = registers[write.register].keeps
    row = ", ".join(show_condition(e, registers) for e in write.row)
    if keeps is Accumulation.SET:
        row = f"{{({row})}}" if len(write.row) > 1 else f"{{{row}}}"
    elif len(write.row) > 1:
        row = f"({row})"
    asked = " ∧ ".join(show_condition(condition, registers) for condition in write.where)
    return f"r{write.register} {':=' if write.fresh else _ADDS[keeps]} {row}{f' if {asked}' if asked else ''}"


def _lines(t: Transition, registers: Sequence[Register]) -> tuple[Line, ...]:
    """The text of an arrow: guard and labels on one line, each write on its own line."""
    first = (Piece(show_guard(t, registers)), Piece(" | "), Piece(show_labels(t.labels), "labels"))
    return first, *((Piece(f"↓ {show_write(w, registers)}", "write"),) for w in t.writes)


def transducer_diagram(transducer: Transducer) -> Diagram:
    """The transducer as a diagram, with its window and its registers as caption."""
    caption = [] if transducer.window is None else [f"WITHIN {show(transducer.window)}"]
    return Diagram(
        "transducer",
        "q",
        [Vertex(f"q{k}", k in transducer.initial, k in transducer.final) for k in range(transducer.states)],
        [Arrow(t.source, t.target, _lines(t, transducer.registers), bool(t.labels)) for t in transducer.transitions],
        [*caption, *(f"r{k}: {r.meaning} ({r.keeps})" for k, r in enumerate(transducer.registers))],
    )
