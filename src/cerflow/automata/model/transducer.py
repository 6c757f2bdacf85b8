"""The one automaton model: a labelled symbolic register transducer, as a frozen value.

It covers complex event automata (labels {•}; P1 §6), their unary label-set form (P2 §5.1), register match automata and
symbolic register transducers. A run reads events one by one. A transition may fire if its test holds for the event, and
its atoms for the event and the registers. It then labels the event (an empty label set leaves it out of the complex
event), writes registers, and moves on. A run that enters a final state detects its complex event at that event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import filterfalse
from operator import or_
from typing import TYPE_CHECKING, Any

from cerflow.base.graphs import grouped, settled_values
from cerflow.base.operators import Operator
from cerflow.language.condition import Condition, Expression
from cerflow.language.formula import Window
from cerflow.language.node import Node
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.logic.conditions.guards import Stored, is_local, leaves
from cerflow.look.pictures.targets import picture, shown_or_told

if TYPE_CHECKING:
    from cerflow.look.pictures.svg import Theme

#: Stands for the label "type of the event" if the query does not name that type.
TYPE_LABEL = "\0type"
#: Marks an event of the complex event that is not reported.
HIDDEN_LABEL = "\0hidden"


class Accumulation(StrEnum):
    """The part of the written values that a register keeps."""

    VALUE = "value"  # the one value written
    MIN = "min"  # the least; null once a null was written
    MAX = "max"  # the greatest; null once a null was written
    SAME = "same"  # the value if all are equal, else null
    SET = "set"  # all distinct rows


@dataclass(frozen=True, slots=True)
class Register:
    """Memory of a run: ``fields`` values (expressions on one event, or a row of them), kept as ``keeps`` says.

    ``meaning`` tells users what is stored. ``window`` is set if the register holds starts of a window, where only the
    latest matters. ``covering`` has an operator or None for each field: a collection may leave out a row if another row
    compares in this way with it in every field. ``windows`` has a window or None for each field: a collection may leave
    out a row if a window that starts there has passed.
    """

    keeps: Accumulation
    fields: int
    meaning: str
    window: Window | None = None
    covering: tuple[Operator | None, ...] = ()
    windows: tuple[Window | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """Writes a row (expressions on the event, or `Stored` leaves) to a register.

    With ``fresh`` the old content is forgotten; otherwise the register accumulates the row. If the write reads
    collections, it writes a row for every choice of their rows that satisfies ``where`` (collections only).
    """

    register: int
    row: tuple[Expression, ...]
    fresh: bool
    where: tuple[Condition, ...] = ()

    def reads(self) -> frozenset[int]:
        """The registers whose content is copied or tested."""
        return frozenset(registers_read((*self.row, *self.where)))


@dataclass(frozen=True, slots=True)
class Transition:
    """``source –test, atoms / labels, writes→ target``; test reads the event alone, atoms relate it to registers."""

    source: int
    target: int
    test: Condition = TRUE
    atoms: tuple[Condition, ...] = ()
    labels: frozenset[str] = frozenset()
    writes: tuple[Write, ...] = ()

    @property
    def skips(self) -> bool:
        """Whether this is a loop that reads any event and changes nothing."""
        return self.test == TRUE and self.stays

    @property
    def stays(self) -> bool:
        """Whether this is a loop that changes nothing and has conditions only on the current event."""
        return self.source == self.target and not self.atoms and not self.labels and not self.writes

    @property
    def trees(self) -> Iterator[Node]:
        """The conditions and expressions beside the test."""
        yield from self.atoms
        for write in self.writes:
            yield from (*write.row, *write.where)

    def writing(self, *writes: Write) -> Transition:
        """The transition with further writes."""
        return replace(self, writes=(*self.writes, *writes)) if writes else self

    def guarded(self, more: Sequence[Condition]) -> Transition:
        """The transition with further guards: those on the event alone join the test, the others the atoms."""
        if not more:
            return self
        test = conjunction([*conjuncts(self.test), *filter(is_local, more)])
        return replace(self, test=test, atoms=tuple(dict.fromkeys((*self.atoms, *filterfalse(is_local, more)))))

    def reguarded(self, guards: Sequence[Condition]) -> Transition:
        """The transition with these guards instead of its own."""
        return replace(self, test=TRUE, atoms=()).guarded(guards)

    def with_trees(self, change: Callable[[Any], Any]) -> Transition:
        """The transition with other atoms, and other conditions and expressions in its writes."""
        if not self.atoms and not self.writes:
            return self
        writes = (
            Write(w.register, tuple(map(change, w.row)), w.fresh, tuple(map(change, w.where))) for w in self.writes
        )
        return replace(self, atoms=tuple(dict.fromkeys(map(change, self.atoms))), writes=tuple(writes))

    def moved(self, source: int, target: int) -> Transition:
        """The same transition between other states."""
        if source == self.source and target == self.target:
            return self
        return Transition(source, target, self.test, self.atoms, self.labels, self.writes)


def asks_all_rows(condition: Condition, register: Callable[[int], Register]) -> bool:
    """Whether a condition has to hold for every row of a collection.

    Without rows, such a condition and its negation both hold.
    """
    single = (leaf for leaf in leaves(condition) if type(leaf) is Stored)
    return any(register(leaf.register).keeps is Accumulation.SET for leaf in single)


@dataclass(frozen=True)
class Transducer:
    """States 0 … states-1, some initial and some final, with transitions and registers.

    ``window`` bounds the extent of the marked events of a run: those of its complex event (the first is where the run
    first labels an event). `TYPE_LABEL` never stands for the names in ``mentioned``. ``one_support`` says that all
    complex events with the same first and last event have the same support.
    """

    states: int
    initial: frozenset[int]
    final: frozenset[int]
    transitions: tuple[Transition, ...]
    registers: tuple[Register, ...] = ()
    window: Window | None = None
    mentioned: frozenset[str] = frozenset()
    one_support: bool = False
    skipping: frozenset[int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for state in self.initial | self.final:
            if not 0 <= state < self.states:
                raise _fault(f"state {state} does not exist")
        for t in self.transitions:
            if not (0 <= t.source < self.states and 0 <= t.target < self.states):
                raise _fault(f"{t} leaves the states")
            if not is_local(t.test):
                raise _fault(f"the test of {t} reads a register")
        for register in registers_used(self.transitions):
            if not 0 <= register < len(self.registers):
                raise _fault(f"register {register} does not exist")
        object.__setattr__(self, "skipping", frozenset(t.source for t in self.transitions if t.skips))

    def to_svg(self, *, theme: Theme = "auto") -> str:
        """The transducer as SVG; ``theme`` and errors are those of `cerflow.Query.to_svg`."""
        from cerflow.automata.model.diagrams import transducer_diagram

        return picture(transducer_diagram(self), "svg", theme=theme)

    def _repr_html_(self) -> str:
        return shown_or_told(self.to_svg)

    def leaving(self) -> list[list[Transition]]:
        """The transitions out of each state."""
        return grouped(self.states, ((t.source, t) for t in self.transitions))

    def live(self) -> tuple[frozenset[int], ...]:
        """For each state, the registers that some transition may still read before writing them again."""

        def needs(reads: tuple[set[int], list[tuple[Write, frozenset[int]]]], after: frozenset[int]) -> frozenset[int]:
            # All reads see the registers before the transition; writes happen in their order.
            found, wanted = set(reads[0]), set(after)
            for write, read in reads[1]:
                if write.register in wanted:
                    if write.fresh:
                        wanted.discard(write.register)
                    found |= read
            return frozenset(found | wanted)

        reads = ((registers_read(t.atoms), [(w, w.reads()) for w in reversed(t.writes)]) for t in self.transitions)
        edges = ((t.target, t.source, read) for t, read in zip(self.transitions, reads))
        live = settled_values(dict.fromkeys(range(self.states), frozenset[int]()), edges, needs, or_)
        return tuple(live[state] for state in range(self.states))


def registers_read(roots: Iterable[Node]) -> set[int]:
    """The registers that expressions read."""
    return {leaf.register for root in roots for leaf in leaves(root) if isinstance(leaf, Stored)}


def registers_used(transitions: Sequence[Transition]) -> set[int]:
    """The registers that transitions read or write."""
    read = registers_read(tree for t in transitions for tree in t.trees)
    return read.union(w.register for t in transitions for w in t.writes)


def _fault(what: str) -> ValueError:
    return ValueError(f"not a transducer: {what}")
