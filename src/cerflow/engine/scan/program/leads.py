"""The moves of a transducer as the flow of runs reads them: their states, the values that they check and write.

Each state has cells: the latest start of its runs, and by register the greatest or the least value that a later event
is compared with. See `cerflow.engine.kernels.rows.leads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cerflow.automata.model.clock import reads_tick
from cerflow.engine import layout as engine_layout
from cerflow.engine import opcodes
from cerflow.engine.layout import EQ, GE, GT, LE, LT
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.emitting import ScannedColumns, code_of
from cerflow.engine.scan.program.guards import ALL, Guards, are_told, joined_bits
from cerflow.engine.scan.program.links import rows_of_move
from cerflow.engine.tables.moves import Move
from cerflow.engine.tables.sums import Limit, limits_of
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import DurationWindow

#: By the operator that compares a column with a register: the side on which the register lies, and whether it may be
#: equal.
_SIDES = {LT: [(True, False)], LE: [(True, True)], GT: [(False, False)], GE: [(False, True)]}
_SIDES[EQ] = [(True, True), (False, True)]
#: What no check is equal to.
_UNKNOWN = object()
#: Moves that are alike: their source, target, whether they may end a match, and their steps.
_Kind = tuple[int, int, bool, tuple[tuple[int, int, int], ...]]


class Cell(NamedTuple):
    """The greatest value of a register in a state, or the least one if it is not ``greatest``."""

    state: int
    slot: int
    greatest: bool


class _Check(NamedTuple):
    cell: Cell
    column: int
    inclusive: bool


@dataclass(frozen=True)
class Leads:
    """Arrays of `ScanArrays` for the flow by name, whose ``states`` are those of the rows of ``places``.

    ``of_moves`` has the bits of each move. Some cells or deadlines are ``bounded``: what lies behind a batch does not
    let every run before go on.
    """

    arrays: Mapping[str, NDArray[Any]]
    states: Sequence[int]
    of_moves: Sequence[int]
    bounded: bool

    @property
    def strict(self) -> bool:
        """Whether every event of a key ends the runs in some state; not told of too many states."""
        return bool(self.arrays["kills"][0] != 0)

    @property
    def valued(self) -> bool:
        """Whether values of events rule out others."""
        return bool((self.arrays["lead_steps"][:, layout.STEP_DOES] == layout.CHECKS).any())


def leads_of(
    tables: TransducerTables,
    relevant: Guards,
    outputs: Sequence[Sequence[int]],
    read: ScannedColumns,
    waits: int,
) -> Leads | str:
    """The leads of some tables, or why there are none.

    ``outputs`` are the rows of `ScanArrays.outputs`, and ``read`` has the columns that these read. Events with one of
    the guards ``waits`` matter wherever runs wait.
    """
    return _LeadsBuilder(tables, relevant, outputs, read).leads(waits)


class _LeadsBuilder:
    def __init__(
        self, tables: TransducerTables, relevant: Guards, outputs: Sequence[Sequence[int]], read: ScannedColumns
    ) -> None:
        self.tables = tables
        self.relevant = relevant
        self.read = read
        self.columns = {row[layout.O_PLACE]: row for row in outputs if row[layout.O_TO] == layout.TO_COLUMNS}
        moves, passing = tables.moves, tables.moves.momentary
        self.ticks = [move for move in moves.rows if reads_tick(move.transition)]
        self.moves = [m for m in moves.rows if not reads_tick(m.transition) and m.transition.source not in passing]
        entered = {move.target for move in moves.rows} - {-1}
        waiting = {move.transition.source for move in self.ticks} - passing
        self.states = sorted(({move.transition.source for move in self.moves} & entered) | waiting)
        self.into: dict[int, list[Move]] = {}
        for move in self.moves:
            self.into.setdefault(move.target, []).append(move)
        self.values: dict[tuple[int, int], int] = {}
        self.combined: dict[Limit, int] = {}

    def leads(self, waits: int) -> Leads | str:
        deadlines, initial = self._deadlines(), self.tables.transducer.initial
        if isinstance(deadlines, str):
            return deadlines
        moves = self.tables.moves
        free = all(frozenset() in moves.loops[q] for q in initial)
        # Guards must say which events end the waiting of runs.
        told = all(frozenset() in loops or are_told(loops) for loops in moves.waiting)
        if deadlines and not (self.relevant.apart and told and free):
            return "deadlines, and too many different conditions"
        checks = {move.number: list(self._checks(move)) for move in self.moves}
        cells = self._cells(checks, deadlines.values())
        if len(cells) + len(self.states) > layout.CELLS:
            if deadlines:
                return "too many conditions between events"
            checks, cells = {}, []
        # Cells of starts come first, and are the states themselves.
        self.numbers = {cell: k for k, cell in enumerate((*self.states, *sorted(cells)))}
        self.cells_in = {state: [cell for cell in sorted(cells) if cell.state == state] for state in self.states}
        return self._made(waits, checks, deadlines)

    def _deadlines(self) -> dict[int, _Check] | str:
        """For each waiting state, how its runs tell that their deadline has passed; or why there is no flow."""
        tables, found = self.tables, dict[int, _Check]()
        for move in self.ticks:
            state = move.transition.source
            if move.target == state:
                continue
            after = [m for m in tables.moves.rows if m.transition.source == move.target]
            ends = all(m.final and m.target < 0 and not m.transition.atoms for m in after)
            rows = rows_of_move(tables, move.number, engine_layout.T_ATOM)
            if move.final or move.target not in tables.moves.momentary or not ends or len(rows) != 1:
                return "deadlines that do not end a match"
            operator, _, column, slot = rows[0][:4]
            passed = operator == GE and tables.columns[column].bound and column in self.columns
            check = _Check(Cell(state, slot, False), column, True)
            if not passed or found.setdefault(state, check) != check:
                return "several deadlines of a partial match"
        return found if found or not self.ticks else "deadlines that do not end a match"

    def _checks(self, move: Move) -> Iterator[_Check]:
        """The conditions of a move between a column and a register."""
        source = move.transition.source
        if source not in self.states:
            return
        arrays = self.tables.arrays
        for operator, kind, column, slot, *_ in rows_of_move(self.tables, move.number, engine_layout.T_ATOM):
            if operator == engine_layout.PROGRAM:
                for limit in limits_of(arrays.code[column:slot].tolist(), arrays.constants.tolist()):
                    if limit.safe and self._is_read(limit.column):
                        yield _Check(Cell(source, limit.slot, limit.greatest), self._combined(limit), True)
            elif kind != engine_layout.RANK and self._is_read(column):
                for greatest, inclusive in _SIDES.get(operator, ()):
                    yield _Check(Cell(source, slot, greatest), column, inclusive)

    def _combined(self, limit: Limit) -> int:
        """The number of a column, beyond those of events, for the value of a limit."""
        key = limit._replace(slot=0, greatest=False)
        if key not in self.combined:
            row, code, constants = list(self.columns[limit.column]), self.read.code, self.read.constants
            own = code_of(row, code)
            constants.append(int(np.array(limit.constant).view(np.int64)))
            both = [own, [[opcodes.CONSTANT, len(constants) - 1]]]
            start = len(code)
            code += [*chain(*(both[::-1] if limit.constant_first else both)), [limit.opcode, 0]]
            number = self.combined[key] = len(self.tables.columns) + len(self.combined)
            row[layout.O_COLUMN : layout.O_CODE_END + 1] = -1, start, len(code)
            self.columns[number] = row
        return self.combined[key]

    def _is_read(self, column: int) -> bool:
        """Whether the flow can read the numbers of an event column."""
        row = self.columns.get(column)
        if row is None or row[layout.O_FORM] in (layout.AS_TEXT, layout.AS_NULL):
            return False
        # The class of a text, which such a program asks for, is known only when events are written.
        code = self.read.code[row[layout.O_CODE] : row[layout.O_CODE_END]]
        columns = [argument for opcode, argument in code if opcode == opcodes.COLUMN]
        return all(self.read.rows[k][layout.C_LAYOUT] != layout.TRUTH for k in columns)

    def _cells(self, checks: Mapping[int, Sequence[_Check]], deadlines: Iterable[_Check]) -> list[Cell]:
        """The cells that are asked for, and those from which they are copied; not all if there are too many."""
        found = dict.fromkeys(check.cell for some in checks.values() for check in some)
        found |= {check.cell._replace(greatest=side): None for check in deadlines for side in (True, False)}
        pending = list(found)
        while pending and len(found) <= layout.CELLS:
            cell = pending.pop()
            for move in self.into.get(cell.state, ()):
                source = self._given(move, cell)
                if isinstance(source, Cell) and source not in found and source.state in self.states:
                    found[source] = None
                    pending.append(source)
        return list(found)

    def _given(self, move: Move, cell: Cell) -> Cell | int | None:
        """What a move gives to a cell of its target: what another cell has, an event column, or None: anything."""
        if move.target != cell.state:
            return None
        found: Cell | int | None = None
        for target, source, *_ in rows_of_move(self.tables, move.number, engine_layout.T_COPY):
            if target == cell.slot:
                found = Cell(move.transition.source, source, cell.greatest)
        for operation, slot, kind, index, *_ in rows_of_move(self.tables, move.number, engine_layout.T_STEP):
            if slot == cell.slot:
                from_column = (operation, kind) == (engine_layout.WRITE, engine_layout.FROM_COLUMN)
                found = index if from_column and self._is_read(index) else None
        return found

    # -- arrays ------------------------------------------------------------------------------------------------------

    def _value(self, column: int, turn: int) -> int:
        """The number in `ScanArrays.values` of an event column, read in this way."""
        return self.values.setdefault((column, turn), len(self.values))

    def _limit(self, check: _Check) -> int:
        turn = layout.A_LIMIT | layout.INCLUSIVE * check.inclusive
        return self._value(check.column, turn | layout.TURNED_AROUND * (not check.cell.greatest))

    def _made(self, waits: int, checks: Mapping[int, Sequence[_Check]], deadlines: Mapping[int, _Check]) -> Leads:
        initial = self.tables.transducer.initial
        steps = {move.number: tuple(self._steps(move, checks.get(move.number, ()))) for move in self.moves}
        # By source, so that an event does not see its own effects.
        kinds = {m.number: (m.transition.source, m.target, m.final, steps[m.number]) for m in self.moves}
        ordered = sorted(set(kinds.values()))
        bits = self._bits(kinds, ordered)
        ordered.sort(key=bits.__getitem__)
        rows, written = list[list[int]](), list[tuple[int, int, int]]()
        for source, target, final, own in ordered:
            places = [self.numbers.get(source, -1), self.numbers.get(target, -1)]
            rows.append([*places, int(final), int(source in initial), len(written), len(written) + len(own)])
            written += own
        of_moves = {number: bits[kind] for number, kind in kinds.items()}
        masks, kills = self._by_guards(of_moves, waits)
        cells = layout.int_rows(self._edges(checks), layout.CELL_WORDS)
        arrays: dict[str, NDArray[Any]] = {
            "leads": layout.int_rows(rows, layout.LEAD_WORDS),
            "lead_steps": layout.int_rows(written, layout.STEP_WORDS),
            "bit_leads": np.searchsorted([bits[kind] for kind in ordered], range(layout.MOVES + 1)),
            "masks": np.array(masks, np.uint8),
            "kills": np.array(kills, np.int64),
            "places": layout.int_rows([self._place(state, deadlines) for state in self.states], layout.PLACE_WORDS),
            "cells": cells,
            "values": layout.int_rows([self._read(column, turn) for column, turn in self.values], layout.VALUE_WORDS),
            "edges": np.zeros(len(cells), np.int64),
            "limits": np.zeros(max(map(len, steps.values()), default=0), np.int64),
            "flows": np.zeros((0, len(cells)), np.int64),
        }
        bounded = bool(deadlines) or bool((cells[:, layout.CELL_EDGE] >= 0).any())
        numbers = (of_moves.get(move.number) for move in self.tables.moves.rows)
        return Leads(arrays, self.states, [0 if bit is None else 1 << bit for bit in numbers], bounded)

    def _bits(self, kinds: Mapping[int, _Kind], ordered: Sequence[_Kind]) -> dict[_Kind, int]:
        """The bit of each kind of moves; of too many kinds, those that the same guards allow share one."""
        guards: dict[_Kind, int] = {}
        for move in self.moves:
            kind = kinds[move.number]
            guards[kind] = guards.get(kind, 0) | self.relevant.needing([move.needs])
        keys: dict[_Kind, Any] = guards if len(ordered) > layout.MOVES else {kind: kind for kind in ordered}
        numbers = {key: k for k, key in enumerate(dict.fromkeys(keys[kind] for kind in ordered))}
        return {kind: min(numbers[keys[kind]], layout.MOVES - 1) for kind in ordered}

    def _read(self, column: int, turn: int) -> list[int]:
        row = list(self.columns[column])
        if row[layout.O_FORM] == layout.AS_FLOAT:
            row[layout.O_FORM] = layout.AS_ORDER
        return [*row, turn, 0]

    def _steps(self, move: Move, checks: Sequence[_Check]) -> Iterator[tuple[int, int, int]]:
        """The rows of `ScanArrays.lead_steps` of a move: one for each cell of its target and of its source."""
        source, numbers = move.transition.source, self.numbers
        done = set()
        for check in checks:
            done.add(check.cell)
            yield layout.CHECKS, numbers[check.cell], self._limit(check)
        for cell in self.cells_in.get(move.target, ()):
            given = self._given(move, cell)
            if isinstance(given, int):
                turn = layout.TURNED_AROUND * (not cell.greatest)
                yield layout.WRITES, numbers[cell], self._value(given, turn)
            elif given is None or given not in numbers:
                yield layout.CARRIES, numbers[cell], -1
            else:
                yield layout.CARRIES if given in done else layout.COPIES, numbers[cell], numbers[given]
                done.add(given)
        for cell in self.cells_in.get(source, ()):
            if cell not in done:
                yield layout.FREES, numbers[cell], -1

    def _by_guards(self, of_moves: Mapping[int, int], waits: int) -> tuple[list[int], list[int]]:
        """`ScanArrays.masks` and `ScanArrays.kills`."""
        moves, guards = self.tables.moves, self.relevant
        allowed = [0] * layout.GUARDS
        for move in self.moves:
            needs = guards.needing([move.needs])
            for k in range(layout.GUARDS):
                allowed[k] |= (needs >> k & 1) << of_moves[move.number]
        # A row that is kept makes all of its moves; only with deadlines it is known which rows must end their runs.
        ended = [0] * layout.GUARDS
        for place, state in enumerate(self.states if self.ticks else ()):
            failing = guards.failing(moves.loops[state])
            for k in range(layout.GUARDS):
                ended[k] |= (failing >> k & 1) << place
        strict = 0
        if self.tables.transducer.states <= engine_layout.STATE_BITS:
            strict = sum(1 << place for place, state in enumerate(self.states) if not moves.loops[state])
        if self.ticks:
            # Only events that end the waiting of runs in these states matter. No event is a tick.
            waits = sum(1 << k for k in range(layout.GUARDS) if ended[k])

        def joined(of: Sequence[int], byte: int) -> int:
            return joined_bits(of[k] for k in range(layout.GUARDS) if byte >> k & 1)

        masks = [joined(allowed, byte) | (layout.WAITS if byte & waits else 0) for byte in range(ALL + 1)]
        return masks, [joined(ended, byte) | strict for byte in range(ALL + 1)]

    def _place(self, state: int, deadlines: Mapping[int, _Check]) -> list[int]:
        numbers, loops, check = self.numbers, self.tables.moves.loops[state], deadlines.get(state)
        waits = int(frozenset() not in loops)
        if check is None:
            return [waits, -1, -1, -1, -1]
        still = _Check(check.cell._replace(greatest=True), check.column, False)
        return [waits, numbers[check.cell], self._limit(check), numbers[still.cell], self._limit(still)]

    def _edges(self, checks: Mapping[int, Sequence[_Check]]) -> list[list[int]]:
        """`ScanArrays.cells`, which tell what is known of times at both ends of a batch."""
        columns = enumerate(self.tables.columns)
        clocks = [k for k, c in columns if isinstance(c.window, DurationWindow) and not c.bound and k in self.columns]
        times = self._times(clocks)
        longest = self._longest(checks, times)
        rows = []
        for cell in self.numbers:
            if isinstance(cell, Cell):
                check = longest.get(cell)
                before = self._value(clocks[0], 0) if cell in times else -1
                rows.append([-1 if check is None else self._limit(check), before, self.numbers[cell.state]])
            else:
                rows.append([-1, -1, self.numbers[cell]])
        return rows

    def _times(self, clocks: Sequence[int]) -> set[Cell]:
        """The cells that hold the time of an event: one of the columns ``clocks``."""
        found = {cell for cell in self.numbers if isinstance(cell, Cell) and cell.greatest}
        changed = True
        while changed:
            others = set()
            for cell in found:
                given = [self._given(move, cell) for move in self.into.get(cell.state, ())]
                if not all(source in (found if isinstance(source, Cell) else clocks) for source in given):
                    others.add(cell)
            changed = bool(others)
            found -= others
        return found

    def _longest(self, checks: Mapping[int, Sequence[_Check]], times: set[Cell]) -> dict[Cell, _Check | None]:
        """For each of some ``times`` the check behind it that lets most time pass; None if a run may pass none."""
        found: dict[Cell, _Check | None] = {}
        waiting = {move.transition.source for move in self.ticks}
        changed = True
        while changed:
            changed = False
            for cell in times:
                some: list[_Check | None] = [None] if cell.state in waiting else []
                for move in self.moves:
                    if move.transition.source == cell.state:
                        own = [c for c in checks.get(move.number, ()) if c.cell == cell and self._window(c) is not None]
                        copies = [other for other in times if self._given(move, other) == cell]
                        if own or move.final or not copies:
                            some.append(own[0] if own else None)
                        elif copies[0] in found:
                            some.append(found[copies[0]])
                bounded = [check for check in some if check is not None]
                least = max(bounded, key=lambda c: self._window(c) or 0) if len(bounded) == len(some) > 0 else None
                if some and found.get(cell, _UNKNOWN) != least:
                    found[cell], changed = least, True
        return found

    def _window(self, check: _Check) -> int | None:
        """The size of the window of which a check's column has the bound, in units of its values."""
        if check.column in self.combined.values():
            return None
        column = self.tables.columns[check.column]
        bound = isinstance(column.window, DurationWindow) and column.bound
        return self.columns[check.column][layout.O_SIZE] if bound else None
