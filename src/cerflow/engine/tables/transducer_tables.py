"""Tables for the kernels, made from a transducer and a schema.

States get slots for their live registers, and expressions become columns. Atoms become comparisons of a column with a
slot, or small programs. The tests of transitions become the *signature* of an event: the set of tests it satisfies.
Each distinct set gets a number when it first appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import accumulate, chain

import numpy as np

from cerflow.automata.model.clock import deadlines_of, has_ticks, opened_by
from cerflow.automata.model.transducer import Accumulation, Transducer
from cerflow.automata.optimise.ambiguity import ambiguous, one_run_each
from cerflow.automata.optimise.detection import begun, best_values, latest_starts
from cerflow.automata.optimise.growth import growing_collections
from cerflow.base import limits
from cerflow.base.array_types import Mask, SmallRows
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.evaluate.binding import bind, readable
from cerflow.engine.evaluate.measures import is_global
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.layout import TableArrays
from cerflow.engine.tables.atoms import AtomCompiler
from cerflow.engine.tables.indexes import Indexes
from cerflow.engine.tables.moves import Effect, Moves
from cerflow.engine.tables.register_kinds import register_kinds
from cerflow.engine.tables.register_steps import StepCompiler, comparison
from cerflow.language.condition import Condition
from cerflow.language.formula import AttributeWindow, CountWindow
from cerflow.logic.conditions.guards import InWindow, Measure


class TransducerTables:
    """The tables of one transducer for one schema, with everything needed to prepare events for them.

    ``position`` is a column of the schema that is not an attribute of whole events. ``precomputed`` are conditions that
    were evaluated before (see `cerflow.engine.evaluate.precomputed_conditions`). With ``detecting`` only the detecting
    events matter, not the events of matches (the transducer comes from `for_detection`). At most ``limit`` matches of
    an event are wanted. Predicates are looked up at once: raises `QueryError` if one is no longer registered.
    """

    def __init__(
        self,
        transducer: Transducer,
        schema: Schema,
        *,
        keys: Sequence[tuple[str, ...]] = (),
        consume: int = 0,
        position: str | None = None,
        strategy: int = layout.EVERYTHING,
        pick: int = layout.EVERYTHING,
        by: frozenset[str] = frozenset(),
        detecting: bool = False,
        limit: int | None = None,
        precomputed: Sequence[Condition] = (),
    ) -> None:
        self.transducer = transducer = bind(transducer, readable(schema, position))
        registers = transducer.registers
        self.schema = schema
        self.detecting = detecting
        self.limit = limit
        self.partitioned = bool(keys)
        self.key_kinds = [schema.key_kind(key) for key in keys]
        self.live = transducer.live()
        self.strings = Strings()
        self.kinds = register_kinds(transducer, schema)
        widths = [1 if r.keeps is Accumulation.SET else r.fields for r in registers]
        orders = [sorted(live, key=lambda r: (registers[r].window is not None, r)) for live in self.live]
        #: For each state the first slot of each of its registers, and the number of its slots.
        self.slots = [dict(zip(order, accumulate((widths[r] for r in order), initial=0))) for order in orders]
        self.slot_counts = [sum(widths[r] for r in order) for order in orders]
        sets = [register.keeps is Accumulation.SET for register in registers]
        #: For each state the slots that hold collections, and those that hold codes of strings.
        self.set_slots = [[slot for register, slot in places.items() if sets[register]] for places in self.slots]
        coded = [[k for k, kind in enumerate(kinds) if kind.coded and not s] for s, kinds in zip(sets, self.kinds)]
        self.string_slots = [[slot + k for r, slot in places.items() for k in coded[r]] for places in self.slots]
        #: Whether some collection holds codes of strings.
        self.collects_strings = any(kind.coded for r, kinds in enumerate(self.kinds) if sets[r] for kind in kinds)
        self.atoms = AtomCompiler(transducer, schema, self.kinds, self.strings)
        #: The expressions that the kernels read, in the order of the event columns.
        self.columns = self.atoms.columns
        # Only the first mark is measured, so later labels do not matter in these states.
        self.moves = Moves(transducer, begun(transducer) if detecting else frozenset(), precomputed)
        #: The tests that signatures are made from.
        self.tests = self.moves.tests
        # If the initial states do not survive every event, the first event matters.
        begins_once = any(frozenset() not in self.moves.loops[q] for q in transducer.initial)
        #: Whether runs are kept as sets: those with equal outputs, or those that begin with the first event.
        self.grouped = begins_once or (not detecting and ambiguous(transducer))
        #: The strategy applied when matches are read, the labels that it compares (empty for all events), whether it
        #: needs lists, and whether it leaves one match per event.
        self.pick = pick
        self.by = by
        self.lists = pick in (layout.EARLIEST, layout.LATEST)
        self.alone = self.lists and one_run_each(transducer)
        #: The registers whose collections may become too many.
        self.guessing = growing_collections(transducer)
        #: Whether runs may read ticks; the durations after which they do.
        self.ticking = has_ticks(transducer)
        self.deadlines = deadlines_of(transducer)
        self.consume = consume
        #: Whether a match drops those of other partitions, which may be known at the same moment.
        self.consumes_at_once = bool(self.deadlines) and self.partitioned and consume == 1
        self._windows = windows = [transducer.window, *(register.window for register in registers)]
        at_once = [window is not None and is_global(window, self.partitioned) for window in windows]
        #: Whether the window of the query ends at the same time for all partitions.
        self.global_window = at_once[0]
        # Unvisited configurations are not forgotten, so all windows must allow forgetting later.
        passing = all(window is None or ends for window, ends in zip(windows, at_once))
        #: Whether the engine may skip the other configurations once one has ended a match.
        self.hasty = detecting and not self.grouped and passing
        self.arrays = self._arrays(len(keys), consume, strategy)
        #: Whether every event of a substream counts, because positions in it or pauses matter.
        self.counted = bool(self.arrays.options[layout.O_COUNTED])
        #: Whether kernels call predicates.
        self.asks = len(self.atoms.calls) > 0
        #: The strings of the query itself; they come first and always stay.
        self.own_strings = len(self.strings)
        self._start_signatures()
        #: The words for these arrays, which recognisers begin with.
        self.shared = SharedArrays()
        self.shared.hold(self.arrays)

    def fresh(self) -> TransducerTables:
        """The same tables with their own strings and signatures; not for programs with predicates."""
        other = copy(self)
        other.strings = Strings(self.strings.texts)
        for name in ("_signatures", "_by_effect", "effects", "relevant", "opened"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    def lacking(self, types: frozenset[str]) -> TransducerTables:
        """The same tables for events none of which has one of some types."""
        other = copy(self)
        other.moves = self.moves.lacking(types)
        return other

    # -- columns and windows -------------------------------------------------------------------------------------

    def _counts(self) -> bool:
        if self.schema.forget is not None or self.reached:
            return True
        # The measured column tells, as starts of windows may be among other values.
        windows = [self.transducer.window, *(column.window for column in self.columns)]
        strict = not self.ticking and any(not self.moves.loops[t.source] for t in self.transducer.transitions)
        return self.partitioned and (strict or any(isinstance(w, CountWindow) for w in windows))

    @property
    def reached(self) -> bool:
        """Whether deadlines lie at values of an attribute, so that any event may end one."""
        return self.ticking and any(isinstance(column.window, AttributeWindow) for column in self.columns)

    def wanted(self, column: int) -> Mask:
        """For each signature, whether some move that it allows reads a column."""
        readers = self.atoms.readers[column]
        return np.array([not readers.isdisjoint(moves) for moves, _ in self.effects], bool)

    # -- slots ---------------------------------------------------------------------------------------------------

    def _better(self, fields: list[list[int]], strategy: int) -> list[int]:
        """For each state, where ``fields`` say how its slots compare with those of a worse configuration, or -1.

        Only for mere detection, where one of two such configurations is enough.
        """
        if not self.detecting or self.grouped or strategy != layout.EVERYTHING:
            return [-1] * self.transducer.states
        begin: list[int] = []
        for places, relations in zip(self.slots, best_values(self.transducer)):
            begin.append(len(fields) if relations else -1)
            # Slots are in the order of `places`.
            found = [
                comparison(relations[r, k], kind) for r in places if relations for k, kind in enumerate(self.kinds[r])
            ]
            if layout.SAME_BITS in found:
                begin[-1] = -1
            else:
                fields.extend([0, 0, 0, how, -1] for how in found)
        return begin

    # -- tables --------------------------------------------------------------------------------------------------

    def _arrays(self, key_words: int, consume: int, strategy: int) -> TableArrays:
        transitions: list[list[int]] = []
        labels: dict[frozenset[str], int] = {frozenset(): 0}
        compared: list[list[list[int]]] = []
        steps = StepCompiler(self.slots, self.kinds, self.atoms)
        # Ticks come between events, so the last event read does not identify a run.
        skips = [bool(loops) or self.ticking for loops in self.moves.loops]
        # Sets of several members are processed as a whole.
        indexed = [not self.grouped and skip for skip in skips]
        for move in self.moves.rows:
            t = move.transition
            self.atoms.move = move.number
            first = len(self.atoms.rows)
            for atom in t.atoms:
                self.atoms.add(atom, self.slots[t.source])
            found = [r for r, a in zip(self.atoms.rows[first:], t.atoms) if not isinstance(a, InWindow)]
            compared.append([*found, *chain(*map(self.atoms.implied, found if indexed[t.source] else ()))])
            copies, begin = len(steps.copies), len(steps.steps)
            steps.add(t, move.target)
            label = labels.setdefault(self.moves.marks(t), len(labels))
            row = [t.source, move.target, label, int(move.final), first]
            row += [len(self.atoms.rows), copies, len(steps.copies), begin, len(steps.steps)]
            transitions.append(row)
        self.atoms.move = -1
        #: Label sets by number; 0 is the empty one.
        self.label_sets = list(labels)
        states = self.transducer.states
        expiring = [steps.expiring(q, partitioned=self.partitioned) for q in range(states)]
        self._indexes = Indexes(compared, [row[layout.T_SOURCE] for row in transitions], indexed)
        options = np.zeros(layout.OPTIONS, np.int64)
        options[layout.O_GROUPED] = self.grouped
        options[layout.O_CONSUME] = consume
        options[layout.O_PARTITIONED] = self.partitioned
        options[layout.O_COUNTED] = self._counts()
        options[layout.O_STATES] = states
        options[layout.O_SLOTS] = max([1, *self.slot_counts])
        options[layout.O_KEY] = key_words
        window = self.transducer.window
        if self.partitioned and isinstance(window, CountWindow):
            options[layout.O_LOCAL_WINDOW] = window.events
        options[layout.O_STRATEGY] = strategy
        options[layout.O_PICK] = self.pick if self.lists else layout.EVERYTHING
        options[layout.O_DETECTING] = self.detecting
        options[layout.O_FORGET] = self.schema.forget is not None
        options[layout.O_WINDOWED] = window is not None
        options[layout.O_MANY] = limits.INDEXED_CONFIGURATIONS
        better = self._better(steps.fields, strategy)
        # In mere detection, where only the latest start of a window is kept, the last slot may not distinguish runs.
        latest = latest_starts(self.transducer) if self.detecting else [None] * states
        telling = [count - int(register is not None) for count, register in zip(self.slot_counts, latest)]
        # Attributes that measure windows must never decrease, and not all are known not to.
        known, column_of = self.schema.ascending, self.schema.column
        by_attribute = [w for w in self._windows if isinstance(w, AttributeWindow)]
        measured = dict.fromkeys(w for w in by_attribute if column_of(w.attribute) not in known)
        checked = [self.atoms.column(Measure(w), as_float=False) for w in measured]
        # Only the kernel knows positions in the substream.
        local = [
            [k, column.window.events if column.bound else 0]
            for k, column in enumerate(self.columns)
            if self.partitioned and isinstance(column.window, CountWindow)
        ]
        return TableArrays(
            transitions=_table(transitions, 10),
            atoms=_table(self.atoms.rows, 6),
            code=_table(self.atoms.code, 2),
            constants=np.array(self.atoms.constants or [0], np.int64),
            ranges=_table(self.atoms.ranges, 2),
            copies=_table(steps.copies, 3),
            steps=_table(steps.steps, 6),
            fields=_table(steps.fields, 5),
            products=_table(steps.products, 4),
            skips=np.array(skips, np.int32),
            slots=np.array(self.slot_counts, np.int32),
            telling=np.array(telling, np.int32),
            better=np.array(better, np.int32),
            expiring=_table([*chain(*expiring)], 3),
            expiring_start=np.cumsum([0, *map(len, expiring)], dtype=np.int32),
            initial=np.array([q in self.transducer.initial for q in range(states)], np.int32),
            dominated=np.array([steps.dominated(q) for q in range(states)], np.int32),
            indexes=_table(self._indexes.rows(), 4),
            checked=np.array(checked, np.int32),
            local=_table(local, 2),
            signature_start=np.zeros(1, np.int32),
            signature_rows=_table([], 7),
            signature_transitions=np.zeros(0, np.int32),
            signature_state=np.zeros((0, states), np.int32),
            options=options,
            failure=self.atoms.calls.failure(),
        )

    # -- signatures ----------------------------------------------------------------------------------------------

    def signatures(self, found: Sequence[frozenset[int]]) -> list[int]:
        """The numbers of sets of satisfied tests; sets with the same effect share one."""
        new = [satisfied for satisfied in dict.fromkeys(found) if satisfied not in self._signatures]
        self._signatures.update(zip(new, self._numbered([*map(self.moves.effect, new)])))
        return [self._signatures[satisfied] for satisfied in found]

    def without(self, signature: int, moves: frozenset[int]) -> int:
        """The number of the signature with the same effect except some moves."""
        allowed, left = self.effects[signature]
        return self._numbered([(tuple(move for move in allowed if move not in moves), left)])[0]

    def _numbered(self, effects: Sequence[Effect]) -> list[int]:
        """The numbers of effects; new ones are added."""
        added = [effect for effect in dict.fromkeys(effects) if effect not in self._by_effect]
        for effect in added:
            self._by_effect[effect] = len(self._by_effect)
            self.effects.append(effect)
            self.relevant.append(self.moves.matters(effect))
            opening = (self.moves.rows[number].transition for number in effect[0] if self.deadlines)
            self.opened.append(frozenset().union(*(opened_by(t, self.deadlines) for t in opening)))
        if added:
            self.arrays = self._with_signatures(self.arrays, added)
        return [self._by_effect[effect] for effect in effects]

    def forget_signatures(self) -> None:
        """Start again if there are very many signatures; only the events of one batch refer to them."""
        if len(self._signatures) > limits.SIGNATURES:
            self._start_signatures()

    def _start_signatures(self) -> None:
        """Have the signature of an event that satisfies no test, and no other."""
        self._signatures: dict[frozenset[int], int] = {}
        self._by_effect: dict[Effect, int] = {}
        #: The effect of each signature.
        self.effects: list[Effect] = []
        #: For each signature whether it allows any move, or ends any waiting.
        self.relevant: list[bool] = []
        #: For each signature the durations after which runs that may begin then read ticks.
        self.opened: list[frozenset[int]] = []
        emptied = ("signature_rows", "signature_transitions", "signature_state")
        none = {name: getattr(self.arrays, name)[:0] for name in emptied}
        self.arrays = self.arrays._replace(signature_start=self.arrays.signature_start[:1], **none)
        self.signatures([frozenset()])

    def _with_signatures(self, tables: TableArrays, added: Sequence[Effect]) -> TableArrays:
        states = np.full((len(added), self.transducer.states), -1, np.int32)
        starts: list[int] = []
        rows: list[list[int]] = []
        order: list[int] = []
        first_row, first_entry = len(tables.signature_rows), len(tables.signature_transitions)
        for k, (moves, left) in enumerate(added):
            by_state: dict[int, list[int]] = {q: [] for q in left}
            for number in moves:
                by_state.setdefault(self.moves.rows[number].transition.source, []).append(number)
            for q in sorted(by_state):
                begin = first_entry + len(order)
                leaves, fired = layout.LEAVES if q in left else layout.STAYS, by_state[q]
                if q in left and (passing := self.moves.unless_staying(fired)) is not None:
                    leaves, fired = layout.LEAVES_FIRED, passing
                order.extend(fired)
                states[k, q] = first_row + len(rows)
                columns = (-1, -1) if leaves == layout.LEAVES else self._indexes.columns(q, fired)
                enough = self.hasty and q not in left and all(self.moves.rows[m].target < 0 for m in fired)
                rows.append([q, begin, begin + len(fired), leaves, *columns, int(enough)])
            starts.append(first_row + len(rows))
        return tables._replace(
            signature_start=np.append(tables.signature_start, np.array(starts, np.int32)),
            signature_rows=np.concatenate([tables.signature_rows, _table(rows, 7)]),
            signature_transitions=np.append(tables.signature_transitions, np.array(order, np.int32)),
            signature_state=np.concatenate([tables.signature_state, states]),
        )


def _table(rows: Sequence[Sequence[int]], width: int) -> SmallRows:
    return np.array(rows, np.int32).reshape(-1, width)
