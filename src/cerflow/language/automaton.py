"""Automata as formulas: ``AUTOMATON '…'``, whose text is the JSON of `cerflow.language.automaton_json`.

One node serves all four models of the papers. Its conditions are those of their transitions: a bare attribute is that
of the event read, ``r.attr`` that of the event in register ``r``. Some conditions exist only in automata, not in the
language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from cerflow.base.graphs import gathered, reached
from cerflow.language.condition import And, Condition, with_labels
from cerflow.language.formula import Embedded, EventKind, EventType
from cerflow.language.node import Node, node

#: The head of an automaton in a register selection: the event read.
HEAD = "~"

#: A state: a number or a name, or a value that a construction made of other states.
State: TypeAlias = "int | str | tuple[State, ...] | frozenset[State]"


class Model(StrEnum):
    """The models of the papers; runs of those with registers begin anywhere, those of UCEA end without a mark."""

    CEA = "CEA"  # complex event automata: conditions on one event, which is marked or not (P1 §6)
    UCEA = "UCEA"  # unary ones, which give sets of labels (P2 §5.1)
    RMA = "RMA"  # register match automata (003 §4)
    SRT = "SRT"  # symbolic register transducers (004 Definition 21)

    @property
    def anywhere(self) -> bool:
        """Whether runs begin at any event."""
        return self in (Model.RMA, Model.SRT)

    @property
    def ends_marked(self) -> bool:
        """Whether runs have to mark the event that they end with."""
        return self is not Model.UCEA


@node
class AutomatonStep(Node):
    """A transition: the labels ``output`` are given to the event read, which is kept in the registers ``writes``.

    The condition None is ε. ``selection`` has a register or `HEAD` for each parameter of the condition of an RMA.
    """

    source: State
    target: State
    condition: Condition | None = None
    output: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    selection: tuple[tuple[str, str], ...] = ()

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        condition = "ε" if self.condition is None else self.condition
        return (f"{show_state(self.source)} –", condition, f"→ {show_state(self.target)}")

    @property
    def applied(self) -> Condition | None:
        """The condition on registers and the event read: the parameters of an RMA replaced by what they stand for."""
        return None if self.condition is None else rename_registers(self.condition, dict(self.selection))


@node
class AutomatonFormula(Embedded):
    """An automaton as a formula: its complex events between i and j are those of the runs that read S[i…j].

    With ``anywhere`` runs begin at any event between i and j instead (004 Definition 32). With ``ends_marked`` they
    have to mark event j, too (P1 §6, 004 Definition 24).
    """

    model: Model
    states: frozenset[State]
    starts: frozenset[State]
    finals: frozenset[State]
    registers: tuple[str, ...]
    steps: tuple[AutomatonStep, ...]
    anywhere: bool
    ends_marked: bool

    sign = "AUTOMATON"

    @property
    def labels(self) -> frozenset[str]:
        """The labels that some transition gives."""
        return frozenset().union(*(step.output for step in self.steps))

    def leaving(self) -> dict[State, list[AutomatonStep]]:
        """The transitions out of each state that some leave."""
        return gathered((step.source, step) for step in self.steps)


def closed(states: Iterable[State], leaving: Mapping[State, list[AutomatonStep]]) -> frozenset[State]:
    """These states, and those reachable by ε-transitions; ``leaving`` as `AutomatonFormula.leaving` gives it."""
    return frozenset(
        reached(states, lambda state: [step.target for step in leaving.get(state, ()) if step.condition is None])
    )


def rename_registers(condition: Condition, names: Mapping[str, str]) -> Condition:
    """The condition on other registers; those without a new name stay, `HEAD` means the event read."""

    def renamed(register: str | None) -> str | None:
        name = register if register is None else names.get(register, register)
        return None if name == HEAD and register in names else name

    return with_labels(condition, renamed) if names else condition


def sorted_states(states: Iterable[State]) -> list[State]:
    """States in a reproducible order."""
    return sorted(states, key=lambda state: (isinstance(state, str), len(show_state(state)), show_state(state)))


def show_state(state: State) -> str:
    """A state as text: ``q3`` for a number, ``(q1, q2)`` for a pair, ``{q1, q2}`` for a set."""
    match state:
        case int():
            return f"q{state}"
        case str():
            return state
        case frozenset():
            return "{" + ", ".join(show_state(s) for s in sorted_states(state)) + "}" if state else "∅"
    return "(" + ", ".join(show_state(s) for s in state) + ")"


@node
class TypeTest(Condition):
    """The current event has this type (and comes from this stream, if one is named)."""

    type: str
    stream: str | None = None

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        if self.type.startswith("\0"):
            # Such a type stands for no event; see `cerflow.automata.model.clock`.
            return (self.type[1:],)
        return (f"type = {self.type}" if self.stream is None else f"type = {self.stream}>{self.type}",)


@node
class StreamTest(Condition):
    """The current event comes from this stream; it holds where streams are not distinguished."""

    stream: str

    template = "stream = {stream}"


@node
class Satisfied(Condition):
    """Two-valued: the condition is true, not false or unknown. ``NOT Satisfied(c)`` is not the same as ``NOT c``."""

    condition: Condition

    template = "satisfied({condition})"


def event_test(event: EventType) -> Condition:
    """The condition on the current event that it is of this type or kind."""
    if not isinstance(event, EventKind):
        return TypeTest(event.name, event.stream)
    return event.condition if event.stream is None else And(StreamTest(event.stream), event.condition)
