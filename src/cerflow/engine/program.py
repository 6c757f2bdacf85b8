"""A transducer and a schema turned into tables for the kernels.

States get slots for the registers that are live there, expressions become columns, relating atoms become comparisons
of a column with a slot (or small programs), and the tests of transitions become the *signature* of an event: the set
of tests it satisfies, of which each distinct one gets a number when it first appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cerflow.automata.ambiguity import ambiguous
from cerflow.automata.guards import InWindow, Measure, Stored, conjuncts, leaves
from cerflow.automata.transducer import Accumulation, Transducer, Transition
from cerflow.engine import layout
from cerflow.engine.atoms import AtomCompiler, Column
from cerflow.engine.binding import bind, readable
from cerflow.engine.kinds import register_kinds
from cerflow.engine.layout import Tables
from cerflow.engine.measures import is_global
from cerflow.engine.strings import Strings
from cerflow.language.condition import Condition, Expression
from cerflow.language.formula import AttributeWindow, CountWindow, Window
from cerflow.schema import Kind, Schema

__all__ = ["Program", "Slots"]

_OPERATIONS = {
    Accumulation.MIN: layout.LEAST,
    Accumulation.MAX: layout.GREATEST,
    Accumulation.SAME: layout.SAME,
    Accumulation.SET: layout.ADD_ROW,
}


@dataclass
class Slots:
    """Where the registers of each state are.

    ``at[state][register]`` is the first slot of a register, ``count[state]`` the number of slots.
    """

    at: list[dict[int, int]]
    count: list[int]


@dataclass
class _Move:
    """What one row of the transition table does."""

    transition: Transition
    target: int
    final: bool
    number: int = field(default=-1)


class Program:
    """The tables of one transducer for one schema, with all that is needed to prepare events for them.

    ``position`` is a column of the schema that is no attribute of whole events. Predicates are looked up now: raises
    `QueryError` if one is not registered any more.
    """

    #: Signatures that are remembered from batch to batch.
    MANY_SIGNATURES = 100_000

    def __init__(
        self,
        transducer: Transducer,
        schema: Schema,
        *,
        keys: Sequence[tuple[str, ...]] = (),
        consume: int = 0,
        position: str | None = None,
        strategy: int = layout.EVERYTHING,
    ) -> None:
        self.transducer = transducer = bind(transducer, readable(schema, position))
        self.schema = schema
        self.partitioned = bool(keys)
        self.key_kinds = [schema.kind(key[0]) for key in keys]
        self.live = transducer.live()
        self.strings = Strings()
        self.kinds = register_kinds(transducer, schema)
        self.slots = self._allocate()
        self.atoms = AtomCompiler(transducer, schema, self.kinds, self.strings)
        #: Label sets by number; 0 is the empty one.
        self.label_sets: list[frozenset[str]] = [frozenset()]
        self._label_numbers: dict[frozenset[str], int] = {frozenset(): 0}
        #: The tests of which signatures are made.
        self.tests: list[Condition] = []
        self._test_numbers: dict[Condition, int] = {}
        #: For each state the tests of its loops that change nothing: where one holds, a run may stay as it is.
        self.loops = self._loops()
        #: Whether runs are kept as sets: those with equal outputs, or those that begin with the first event.
        self.grouped = self._begins_once or ambiguous(transducer)
        self.moves = self._moves()
        self._needs = [self._tests_of(move.transition) for move in self.moves]
        self._signatures: dict[frozenset[int], int] = {}
        self._by_effect: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        #: For each signature the moves that it allows.
        self._allowed: list[frozenset[int]] = []
        #: For each signature whether it allows any move, or ends any waiting.
        self.relevant: list[bool] = []
        self.tables = self._tables(len(keys), consume, strategy)
        #: The strings of the query itself, which come first and never go.
        self.own_strings = len(self.strings)
        self.signatures([frozenset()])

    # -- columns and windows -------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[Column]:
        """The expressions that the kernels read, in the order of the event columns."""
        return self.atoms.columns

    @property
    def counted(self) -> bool:
        """Whether positions in the substream matter, so that every event of it has to be counted."""
        windows = [self.transducer.window, *(r.window for r in self.transducer.registers)]
        strict = any(not loops and q not in self.transducer.final for q, loops in enumerate(self.loops))
        return self.partitioned and (strict or any(isinstance(w, CountWindow) for w in windows))

    @property
    def _begins_once(self) -> bool:
        """Whether the initial states do not outlast every event, so that it matters which event is the first."""
        return any(frozenset() not in self.loops[q] for q in self.transducer.initial)

    @property
    def asks(self) -> bool:
        """Whether kernels ask predicates."""
        return len(self.atoms.calls) > 0

    def wanted(self, column: int) -> NDArray[np.bool_]:
        """For each signature whether some move that it allows reads a column."""
        readers = self.atoms.readers[column]
        return np.array([not readers.isdisjoint(moves) for moves in self._allowed], bool)

    def other_tests(self, test: int) -> list[frozenset[int]]:
        """The tests beside this one, for each move or loop that has it."""
        together = [*self._needs, *(needs for loops in self.loops for needs in loops)]
        return [needs - {test} for needs in together if test in needs]

    @property
    def global_window(self) -> bool:
        """Whether the window of the query ends at the same time for all partitions."""
        window = self.transducer.window
        return window is not None and is_global(window, self.partitioned)

    @property
    def set_slots(self) -> list[list[int]]:
        """For each state the slots that hold collections."""
        registers = self.transducer.registers
        return [
            [slot for register, slot in places.items() if registers[register].keeps is Accumulation.SET]
            for places in self.slots.at
        ]

    @property
    def string_slots(self) -> list[list[int]]:
        """For each state the slots that hold codes of strings."""
        found: list[list[int]] = []
        for places in self.slots.at:
            slots = []
            for register, slot in places.items():
                if self.transducer.registers[register].keeps is not Accumulation.SET:
                    slots += [slot + k for k, kind in enumerate(self.kinds[register]) if kind is Kind.STRING]
            found.append(slots)
        return found

    @property
    def collects_strings(self) -> bool:
        """Whether some collection holds codes of strings."""
        return any(
            r.keeps is Accumulation.SET and Kind.STRING in self.kinds[k]
            for k, r in enumerate(self.transducer.registers)
        )

    # -- slots ---------------------------------------------------------------------------------------------------

    def _allocate(self) -> Slots:
        at: list[dict[int, int]] = []
        count: list[int] = []
        for live in self.live:
            places: dict[int, int] = {}
            used = 0
            for register in sorted(live):
                places[register] = used
                kept = self.transducer.registers[register]
                used += 1 if kept.keeps is Accumulation.SET else kept.fields
            at.append(places)
            count.append(used)
        return Slots(at, count)

    # -- transitions ---------------------------------------------------------------------------------------------

    def _loops(self) -> list[list[frozenset[int]]]:
        loops: list[list[frozenset[int]]] = [[] for _ in range(self.transducer.states)]
        for t in self.transducer.transitions:
            # To go on from a final state to itself is to detect once more.
            if t.stays and t.source not in self.transducer.final:
                loops[t.source].append(self._tests_of(t))
        return loops

    def _leaves(self, satisfied: frozenset[int]) -> tuple[int, ...]:
        """The states in which no run may stay over an event that satisfies these tests, though it may over others.

        Those without any such loop are left out (but for initial ones): for them it counts that no event comes between.
        """
        return tuple(
            q
            for q, loops in enumerate(self.loops)
            if (loops or q in self.transducer.initial) and not any(needs <= satisfied for needs in loops)
        )

    def _moves(self) -> list[_Move]:
        going_on = {t.source for t in self.transducer.transitions}
        final = self.transducer.final
        moves: list[_Move] = []
        together: dict[tuple[object, ...], list[Transition]] = {}
        for t in self.transducer.transitions:
            if not t.stays or t.source in final:
                together.setdefault((t.source, t.test, t.atoms, t.labels), []).append(t)
        for group in together.values():
            ends = any(t.target in final for t in group)
            rows = [_Move(t, t.target, False) for t in group if t.target in going_on]
            if not rows:
                rows = [_Move(group[0], -1, False)]
            # One of the rows says that a match ends here, or it would be found twice.
            rows[0].final = ends
            moves.extend(rows)
        for number, move in enumerate(moves):
            move.number = number
        return moves

    def _tests_of(self, t: Transition) -> frozenset[int]:
        found = set()
        for test in conjuncts(t.test):
            if test not in self._test_numbers:
                self._test_numbers[test] = len(self.tests)
                self.tests.append(test)
            found.add(self._test_numbers[test])
        return frozenset(found)

    def label_set(self, labels: frozenset[str]) -> int:
        """The number of a label set."""
        if labels not in self._label_numbers:
            self._label_numbers[labels] = len(self.label_sets)
            self.label_sets.append(labels)
        return self._label_numbers[labels]

    # -- tables --------------------------------------------------------------------------------------------------

    def _tables(self, key_words: int, consume: int, strategy: int) -> Tables:
        transitions: list[list[int]] = []
        copies: list[tuple[int, int, int]] = []
        steps: list[list[int]] = []
        fields: list[list[int]] = []
        products: list[list[int]] = []
        for move in self.moves:
            t = move.transition
            self.atoms.move = move.number
            row = [t.source, move.target, self.label_set(t.labels), int(move.final)]
            row.append(self.atoms.count)
            for atom in t.atoms:
                self.atoms.add(atom, self.slots.at[t.source])
            row.append(self.atoms.count)
            row.append(len(copies))
            if move.target >= 0:
                copies.extend(self._copies(t, move.target))
            row.extend((len(copies), len(steps)))
            if move.target >= 0:
                self._steps(t, move.target, steps, fields, products)
            row.append(len(steps))
            transitions.append(row)
        self.atoms.move = -1
        expiring, expiring_start = self._expiring()
        states = self.transducer.states
        options = np.zeros(layout.OPTIONS, np.int64)
        options[layout.O_GROUPED] = self.grouped
        options[layout.O_CONSUME] = consume
        options[layout.O_PARTITIONED] = self.partitioned
        options[layout.O_COUNTED] = self.counted
        options[layout.O_STATES] = states
        options[layout.O_SLOTS] = max([1, *self.slots.count])
        options[layout.O_KEY] = key_words
        window = self.transducer.window
        if self.partitioned and isinstance(window, CountWindow):
            options[layout.O_LOCAL_WINDOW] = window.events
        options[layout.O_STRATEGY] = strategy
        options[layout.O_WINDOWED] = window is not None
        return Tables(
            transitions=_table(transitions, 10),
            atoms=_table(self.atoms.rows, 6),
            code=_table(self.atoms.code, 2),
            constants=np.array(self.atoms.constants or [0], np.int64),
            ranges=_table(self.atoms.ranges, 2),
            copies=_table(copies, 3),
            steps=_table(steps, 6),
            fields=_table(fields, 3),
            products=_table(products, 4),
            skips=np.array([bool(loops) for loops in self.loops], np.int32),
            slots=np.array(self.slots.count, np.int32),
            expiring=_table(expiring, 3),
            expiring_start=np.array(expiring_start, np.int32),
            initial=np.array([q in self.transducer.initial for q in range(states)], np.int32),
            dominated=np.array([self._dominated(q) for q in range(states)], np.int32),
            checked=np.array(self._checked_columns(), np.int32),
            local=_table(self._local_columns(), 2),
            signature_start=np.zeros(1, np.int32),
            signature_rows=_table([], 4),
            signature_transitions=np.zeros(0, np.int32),
            signature_state=np.zeros((0, states), np.int32),
            options=options,
            failure=self.atoms.calls.failure(),
        )

    def _copies(self, t: Transition, target: int) -> list[tuple[int, int, int]]:
        result: list[tuple[int, int, int]] = []
        source = self.slots.at[t.source]
        renewed = {w.register for w in t.writes if w.fresh}
        for register, slot in self.slots.at[target].items():
            if register in renewed or register not in source:
                continue
            kept = self.transducer.registers[register]
            bound = -1 if kept.window is None else self.atoms.bound_column(kept.window)
            width = 1 if kept.keeps is Accumulation.SET else kept.fields
            result.extend((slot + k, source[register] + k, bound) for k in range(width))
        return result

    def _steps(
        self, t: Transition, target: int, steps: list[list[int]], fields: list[list[int]], products: list[list[int]]
    ) -> None:
        for write in t.writes:
            if write.register not in self.slots.at[target]:
                continue
            slot = self.slots.at[target][write.register]
            kept = self.transducer.registers[write.register]
            if kept.keeps is Accumulation.SET:
                places, kinds = self.slots.at[t.source], self.kinds[write.register]
                product, row = self.atoms.product(write.row, write.where, places, kinds)
                operation = layout.NEW_SET if write.fresh else layout.ADD_ROW
                steps.append([operation, slot, len(products), len(fields), 0, len(fields) + len(row)])
                products.append(product)
                fields.extend(row)
                continue
            for k, expression in enumerate(write.row):
                kind = self.kinds[write.register][k]
                source, index, end = self._field(expression, t.source, kind)
                operation = layout.WRITE if write.fresh else _OPERATIONS[kept.keeps]
                steps.append([operation, slot + k, source, index, _order(kind), end])

    def _field(self, expression: Expression, state: int, kind: Kind) -> list[int]:
        """Where a value to be stored comes from: source, index or first instruction, last instruction."""
        places = self.slots.at[state]
        if isinstance(expression, Stored):
            return [layout.FROM_SLOT, places[expression.register] + expression.field, 0]
        if leaves(expression):
            return [layout.FROM_PROGRAM, *self.atoms.computed(expression, places, kind)]
        return [layout.FROM_COLUMN, self.atoms.column(expression, as_float=kind is Kind.FLOAT), 0]

    # -- windows inside formulas ---------------------------------------------------------------------------------

    def _window_slots(self, state: int) -> list[tuple[int, int, Window]]:
        return [
            (register, slot, window)
            for register, slot in self.slots.at[state].items()
            if (window := self.transducer.registers[register].window) is not None
        ]

    def _dominated(self, state: int) -> int:
        found = self._window_slots(state)
        return found[0][1] if len(found) == 1 else -1

    def _expiring(self) -> tuple[list[list[int]], list[int]]:
        """Windows that every way from a state to a match still asks for: once they have passed, nothing comes of it."""
        windows = frozenset(r for r, kept in enumerate(self.transducer.registers) if kept.window is not None)
        needed = [windows] * self.transducer.states
        changed = bool(windows)
        while changed:
            changed = False
            for q in range(self.transducer.states):
                left = needed[q]
                for t in self.transducer.transitions:
                    if t.source != q or t.skips:
                        continue
                    asked = {a.start.register for a in t.atoms if isinstance(a, InWindow)}
                    written = {w.register for w in t.writes if w.fresh}
                    after = frozenset() if t.target in self.transducer.final else needed[t.target] - written
                    left = left & (asked | after)
                if left != needed[q]:
                    needed[q] = left
                    changed = True
        rows: list[list[int]] = []
        starts = [0]
        for q in range(self.transducer.states):
            for register, slot, window in self._window_slots(q):
                if register in needed[q]:
                    rows.append([slot, self.atoms.bound_column(window), int(is_global(window, self.partitioned))])
            starts.append(len(rows))
        return rows, starts

    def _checked_columns(self) -> list[int]:
        """Columns of attributes that measure windows: windows are right only if these never decrease."""
        windows = [self.transducer.window, *(r.window for r in self.transducer.registers)]
        found = dict.fromkeys(w for w in windows if isinstance(w, AttributeWindow))
        return [self.atoms.column(Measure(window), as_float=False) for window in found]

    def _local_columns(self) -> list[list[int]]:
        """Columns that hold positions in the substream, which only the kernel knows."""
        if not self.partitioned:
            return []
        rows: list[list[int]] = []
        for k, column in enumerate(self.columns):
            if isinstance(column.window, CountWindow):
                rows.append([k, column.window.events if column.bound else 0])
        return rows

    # -- signatures ----------------------------------------------------------------------------------------------

    def signatures(self, found: Sequence[frozenset[int]]) -> list[int]:
        """The numbers of sets of satisfied tests: those that have the same effect share one."""
        added: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for satisfied in found:
            if satisfied not in self._signatures:
                moves = tuple(m.number for m, needs in zip(self.moves, self._needs) if needs <= satisfied)
                effect = (moves, self._leaves(satisfied))
                if effect not in self._by_effect:
                    self._by_effect[effect] = len(self._by_effect)
                    self._allowed.append(frozenset(moves))
                    self.relevant.append(effect != ((), ()))
                    added.append(effect)
                self._signatures[satisfied] = self._by_effect[effect]
        if added:
            self.tables = self._with_signatures(self.tables, added)
        return [self._signatures[satisfied] for satisfied in found]

    def forget_signatures(self) -> None:
        """Start anew if there are very many signatures; only the events of one batch refer to them."""
        if len(self._signatures) > self.MANY_SIGNATURES:
            self._signatures = {}
            self._by_effect = {}
            self._allowed = []
            self.relevant = []
            self.tables = self.tables._replace(
                signature_start=self.tables.signature_start[:1],
                signature_rows=self.tables.signature_rows[:0],
                signature_transitions=self.tables.signature_transitions[:0],
                signature_state=self.tables.signature_state[:0],
            )
            self.signatures([frozenset()])

    def _with_signatures(self, tables: Tables, added: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> Tables:
        states = np.full((len(added), self.transducer.states), -1, np.int32)
        starts: list[int] = []
        rows: list[list[int]] = []
        order: list[int] = []
        first_row, first_entry = len(tables.signature_rows), len(tables.signature_transitions)
        for k, (moves, left) in enumerate(added):
            by_state: dict[int, list[int]] = {q: [] for q in left}
            for number in moves:
                by_state.setdefault(self.moves[number].transition.source, []).append(number)
            for q in sorted(by_state):
                begin = first_entry + len(order)
                order.extend(by_state[q])
                states[k, q] = first_row + len(rows)
                rows.append([q, begin, begin + len(by_state[q]), int(q in left)])
            starts.append(first_row + len(rows))
        return tables._replace(
            signature_start=np.append(tables.signature_start, np.array(starts, np.int32)),
            signature_rows=np.concatenate([tables.signature_rows, _table(rows, 4)]),
            signature_transitions=np.append(tables.signature_transitions, np.array(order, np.int32)),
            signature_state=np.concatenate([tables.signature_state, states]),
        )


def _order(kind: Kind) -> int:
    if kind is Kind.FLOAT:
        return layout.FLOAT
    return layout.RANK if kind is Kind.STRING else layout.INT


def _table(rows: Sequence[Sequence[int]], width: int) -> layout.Smalls:
    return np.array(rows, np.int32).reshape(-1, width)
