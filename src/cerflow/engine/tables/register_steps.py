"""Effects of transitions on registers, as rows of tables: values that are copied along, and steps that write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Accumulation, Transition
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.engine import layout
from cerflow.engine.evaluate.measures import is_global
from cerflow.engine.tables.atoms import AtomCompiler
from cerflow.language.formula import Window

_OPERATIONS = {
    Accumulation.MIN: layout.LEAST,
    Accumulation.MAX: layout.GREATEST,
    Accumulation.SAME: layout.SAME,
    Accumulation.SET: layout.ADD_ROW,
}


class StepCompiler:
    """Collects the rows of `TableArrays` for ``copies``, ``steps``, ``fields`` and ``products``.

    ``slots[state][register]`` is the first slot of a register of a state.
    """

    def __init__(
        self, slots: Sequence[Mapping[int, int]], kinds: Sequence[Sequence[ValueKind]], atoms: AtomCompiler
    ) -> None:
        self._registers = atoms.transducer.registers
        self._slots = slots
        self._kinds = kinds
        self._atoms = atoms
        self._needed = windows_needed(atoms.transducer)
        self.copies: list[tuple[int, int, int]] = []
        self.steps: list[list[int]] = []
        self.fields: list[list[int]] = []
        self.products: list[list[int]] = []

    def add(self, t: Transition, target: int) -> None:
        """Add the effects of a transition on the registers of a target state (-1: runs do not continue from it)."""
        if target < 0:
            return
        source = self._slots[t.source]
        renewed = {w.register for w in t.writes if w.fresh}
        for register, slot in self._slots[target].items():
            if register in renewed or register not in source:
                continue
            kept = self._registers[register]
            bound = -1 if kept.window is None else self._atoms.bound_column(kept.window)
            width = 1 if kept.keeps is Accumulation.SET else kept.fields
            self.copies.extend((slot + k, source[register] + k, bound) for k in range(width))
        self._write(t, target)

    def _write(self, t: Transition, target: int) -> None:
        for write in t.writes:
            if write.register not in self._slots[target]:
                continue
            slot = self._slots[target][write.register]
            kept = self._registers[write.register]
            if kept.keeps is Accumulation.SET:
                places, kinds = self._slots[t.source], self._kinds[write.register]
                product, row = self._atoms.product(write.row, write.where, places, kinds)
                operation = layout.NEW_SET if write.fresh else layout.ADD_ROW
                first = len(self.fields)
                self.steps.append([operation, slot, len(self.products), first, 0, first + len(row)])
                self.products.append(product)
                covering = kept.covering or (Operator.EQ,) * kept.fields
                bounds = [-1 if w is None else self._atoms.bound_column(w) for w in kept.windows]
                bounds += [-1] * (kept.fields - len(bounds))
                self.fields.extend(
                    [*field, comparison(relation, kind), bound]
                    for field, relation, kind, bound in zip(row, covering, kinds, bounds)
                )
                continue
            for k, expression in enumerate(write.row):
                kind = self._kinds[write.register][k]
                source, index, end = self._atoms.field(expression, self._slots[t.source], kind)
                operation = layout.WRITE if write.fresh else _OPERATIONS[kept.keeps]
                order = layout.FLOAT if kind is ValueKind.FLOAT else layout.RANK if kind.coded else layout.INT
                self.steps.append([operation, slot + k, source, index, order, end])

    # -- windows inside formulas, whose starts are in registers ------------------------------------------------------

    def _windows(self, state: int) -> list[tuple[int, int, Window]]:
        """The registers of a state with a window: number, slot and window."""
        places = self._slots[state].items()
        return [(r, slot, window) for r, slot in places if (window := self._registers[r].window) is not None]

    def dominated(self, state: int) -> int:
        """The slot whose greatest value alone matters among runs of equal output, or -1."""
        found = self._windows(state)
        return found[0][1] if len(found) == 1 else -1

    def expiring(self, state: int, *, partitioned: bool) -> list[list[int]]:
        """The rows of ``expiring`` for windows that every path from a state to a match still tests.

        Once passed, they rule out all matches.
        """
        return [
            [slot, self._atoms.bound_column(window), int(is_global(window, partitioned))]
            for register, slot, window in self._windows(state)
            if register in self._needed[state]
        ]


def comparison(relation: Operator | None, kind: ValueKind) -> int:
    """How a value compares with another that it makes unnecessary; for strings, only by equality."""
    if relation is None:
        return layout.ANYTHING
    if relation is Operator.EQ or kind.coded:
        return layout.SAME_BITS
    if kind is ValueKind.FLOAT:
        return layout.LEAST_FLOAT if relation is Operator.LE else layout.GREATEST_FLOAT
    return layout.LEAST_INT if relation is Operator.LE else layout.GREATEST_INT
