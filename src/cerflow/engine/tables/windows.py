"""Windows inside formulas, whose starts are in registers: the optimisations that the engine can make."""

from __future__ import annotations

from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Transducer
from cerflow.engine.evaluate.measures import is_global
from cerflow.engine.tables.atoms import AtomCompiler
from cerflow.engine.tables.register_steps import Slots
from cerflow.language.formula import AttributeWindow, CountWindow, Window
from cerflow.logic.conditions.guards import Measure


class Windows:
    """The windows of one transducer."""

    def __init__(self, transducer: Transducer, slots: Slots, atoms: AtomCompiler, *, partitioned: bool) -> None:
        self._transducer = transducer
        self._slots = slots
        self._atoms = atoms
        self._partitioned = partitioned

    def _slots_of(self, state: int) -> list[tuple[int, int, Window]]:
        return [
            (register, slot, window)
            for register, slot in self._slots.at[state].items()
            if (window := self._transducer.registers[register].window) is not None
        ]

    def dominated(self, state: int) -> int:
        """The slot whose greatest value alone matters among runs of equal output, or -1."""
        found = self._slots_of(state)
        return found[0][1] if len(found) == 1 else -1

    def expiring(self) -> tuple[list[list[int]], list[int]]:
        """Windows that every path from a state to a match still tests: once passed, they rule out all matches."""
        needed = windows_needed(self._transducer)
        rows: list[list[int]] = []
        starts = [0]
        for q in range(self._transducer.states):
            for register, slot, window in self._slots_of(q):
                if register in needed[q]:
                    rows.append([slot, self._atoms.bound_column(window), int(is_global(window, self._partitioned))])
            starts.append(len(rows))
        return rows, starts

    def checked_columns(self) -> list[int]:
        """Columns of attributes that measure windows, which must never decrease."""
        windows = [self._transducer.window, *(r.window for r in self._transducer.registers)]
        found = dict.fromkeys(w for w in windows if isinstance(w, AttributeWindow))
        return [self._atoms.column(Measure(window), as_float=False) for window in found]

    def local_columns(self) -> list[list[int]]:
        """Columns that hold positions in the substream, which only the kernel knows."""
        if not self._partitioned:
            return []
        rows: list[list[int]] = []
        for k, column in enumerate(self._atoms.columns):
            if isinstance(column.window, CountWindow):
                rows.append([k, column.window.events if column.bound else 0])
        return rows
