"""A plan: a query made ready for events of one schema. All recognisers of the query and schema share it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import attrgetter
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.automata.model.clock import deadlines_of, has_ticks
from cerflow.automata.model.transducer import Transducer
from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of, rows_taken, truths_of
from cerflow.base.errors import InputError, expect
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.events.signatures import Evaluation, columns_of_test, columns_read
from cerflow.engine.recognize import planning
from cerflow.engine.recognize.columns_needed import holding
from cerflow.engine.recognize.sessions import SESSION, with_sessions
from cerflow.engine.recognize.total_keys import TotalKeys
from cerflow.engine.results.report import POSITION, Report
from cerflow.engine.scan.columns import texts_equal
from cerflow.engine.scan.program.compiler import ScanProgram, scan_program
from cerflow.engine.scan.scan import BatchScan
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Condition, PredicateCall
from cerflow.language.formula import DurationWindow
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.logic.analysis.checks import check_query
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.analysis.types import check_types
from cerflow.logic.rewriting.keys import key_source


class InputStreams:
    """Lets the events of the named streams through; without FROM all events.

    Positions are those of the whole input, so a column carries them if events of other streams are left out.
    ``schema`` and ``position`` describe the events that come out.
    """

    def __init__(self, select: Select, schema: Schema, position: str | None) -> None:
        self._column = schema.stream if select.streams else None
        self._names = select.streams
        self.schema = schema if self._column is not None else replace(schema, stream=None)
        self.position = position
        if self._column is not None and position is None:
            self.position = POSITION
            self.schema = replace(schema, columns=schema.columns.append(pa.field(POSITION, pa.int64())))

    def admit(self, rows: pa.RecordBatch, first: int) -> tuple[pa.RecordBatch, Ints | None]:
        """The rows of the named streams, and their indexes (None: all); the first row is number ``first`` of all."""
        if self._column is None:
            return rows, None
        column = rows.column(self._column)
        if pa.types.is_dictionary(column.type):
            named = pc.is_in(column.dictionary.cast(pa.string()), value_set=array_of_texts(self._names))
            # Indices beyond the dictionary count as null.
            known = np.append(truths_of(named), False)
            mask = np.take(known, numbers_of(column.indices), mode="clip") & truths_of(column.is_valid())
        else:
            # To compare with each takes less time than to look all up.
            mask = reduce(np.logical_or, (texts_equal(column, name) for name in self._names))
        index = np.flatnonzero(mask)
        rows = rows_taken(rows, index)
        if self.position == POSITION:
            rows = rows.append_column(POSITION, array_of_numbers(first + index))
        return rows, index


#: Which register a transition writes to, and whether it starts again.
_REGISTER = attrgetter("register", "fresh")
_CONSUME = {Consumption.NONE: 0, Consumption.ANY: 1, Consumption.PARTITION: 2}


def lasting(select: Select) -> bool:
    """Whether recognisers can share the tables of a query: it does not call predicates.

    Predicates are looked up whenever recognition begins, and may know the strings of one recogniser.
    """
    return not any(isinstance(current, PredicateCall) for current in walk(select))


class Plan:
    """A query made ready for a schema and a source of positions, for `Recognizer`.

    ``precomputed`` are conditions that the caller has evaluated; the events come with their truth values in a column
    `PRECOMPUTED` (see `cerflow.engine.evaluate.precomputed_conditions`). The schema may then lack columns that
    nothing else reads. A caller that gives these or the ``transducer`` must have checked the query. Raises
    `QueryError` if the query does not fit the schema, `InputError` if the positions are not integers, and
    `UnsupportedQueryError` if the engine cannot evaluate the query.
    """

    def __init__(
        self,
        select: Select,
        schema: Schema,
        *,
        position: str | None = None,
        positions: bool = True,
        transducer: Transducer | None = None,
        precomputed: Sequence[Condition] = (),
    ) -> None:
        if transducer is None and not precomputed:
            check_query(select)
            check_types(select, schema)
        if position is not None:
            expect(position, str, "the name of the column of positions must be a string")
            if not schema.has(position) or schema.kind(position) is not ValueKind.INTEGER:
                raise InputError(f"the position column '{position}' is not a column of integers of the input")
        self.select = select
        self.schema = schema = holding(schema, [select])
        self.position = position
        self.positions = positions
        self._precomputed = precomputed
        self.streams = InputStreams(select, schema, position)
        inner = self.streams.schema
        # A position column of the caller is always reported; one that only FROM needs is reported on request.
        numbered = positions or position is not None
        self.report = Report(select, inner, positions=numbered, position=self.streams.position)
        self.limit = planning.limit_of(select)
        #: The query as it is evaluated, see `fitted`; ``transducer`` is made from it.
        self.evaluated = planning.fitted(select, inner, times=not precomputed)
        self.transducer = planning.compile_select(self.evaluated) if transducer is None else transducer
        #: Whether each session of a key is a partition of its own, as deadlines may outlast it.
        self.by_session = schema.forget is not None and has_ticks(self.transducer)
        #: The query may be divided by keys that follow from its conditions; results do not show these.
        self.keys = (*select.partition, (SESSION,)) if self.by_session else self.evaluated.partition
        #: What events get besides their own columns, so that those without a key have one.
        self.total_keys = TotalKeys(self.keys, inner)
        #: The schema of the events as they are read.
        self.read = with_sessions(inner, deadlines_of(self.transducer)) if self.by_session else self.total_keys.schema
        # The keys of deadlines are those of events that are kept.
        keyed = [key_source(name) for key in self.evaluated.partition for name in map(inner.column, key)]
        stored = [*self.report.stored, *(keyed if has_ticks(self.transducer) else ())]
        self.columns = [*dict.fromkeys(stored), *([SESSION] if self.by_session else [])]
        self.stored = pa.schema([self.read.columns.field(name) for name in self.columns])
        #: The tables that recognisers take fresh copies of.
        self.tables = self._make()
        #: Whether every event of the input belongs to the query and is numbered as it comes.
        self.counts_all = self.streams.position is None
        #: Whether the query keeps events of the input unchanged, with their numbers in the input.
        self.keeps_input = self.counts_all and not self.by_session
        #: Whether the query may read and keep events together with other queries.
        self.shares_events = self.counts_all and not self.tables.ticking
        #: Whether it only keeps events of the input that it chooses, and numbers these itself.
        self.chooses_events = self.position is None and not (self.counts_all or self.by_session or self.tables.ticking)
        #: The conditions on one event alone in its transitions.
        self.tests = self.tables.tests
        self._lock = Lock()
        self._first_scan: BatchScan | None = None
        self.evaluation = Evaluation.of(self.tables)
        #: The program by which batches are scanned, while no event has a type that is taken for absent.
        self.scan = self._scanned(planning.absent_so_far(select, schema, self._read))
        #: The columns that recognition reads, in the order of the input; at least one, or rows could not be counted.
        self.reads = [name for name in schema.attributes if name in self._read or name == schema.type]

    @cached_property
    def _read(self) -> frozenset[str]:
        tables = self.tables
        if not lasting(self.select):
            # Predicates may get whole events.
            return frozenset(self.schema.attributes)
        windows = [tables.transducer.window, *(column.window for column in tables.columns)]
        timed = self.schema.forget is not None or any(isinstance(window, DurationWindow) for window in windows)
        roles = (self.schema.stream, self.position, self.schema.time if timed else None)
        read = map(key_source, columns_read(tables, self.evaluated))
        return frozenset(read).union(name for name in roles if name is not None)

    @property
    def needs(self) -> frozenset[str]:
        """The columns that recognition and report need; the type of events is among them only if it is read."""
        return self._read | self.report.shown_columns

    def reading(self, test: Condition) -> frozenset[str]:
        """The columns that a condition on one event reads."""
        return columns_of_test(test, self.tables)

    @cached_property
    def numbering(self) -> str:
        """A hash of the numbers of states and registers, and of their meaning."""
        made = self.tables.transducer
        moves = [
            (t.source, t.target, show(t.test), len(t.atoms), sorted(t.labels), [*map(_REGISTER, t.writes)])
            for t in made.transitions
        ]
        registers = [(register.keeps, register.fields) for register in made.registers]
        return _hash((made.states, sorted(made.initial), sorted(made.final), sorted(moves), registers))

    @cached_property
    def remembering(self) -> str:
        """A hash of what transitions write to registers, and of their conditions on these."""
        made = self.tables.transducer
        moves = []
        for t in made.transitions:
            writes = [(w.register, w.fresh, [*map(show, w.row)], sorted(map(show, w.where))) for w in t.writes]
            moves.append((t.source, t.target, show(t.test), sorted(map(show, t.atoms)), writes))
        windows = [None if register.window is None else show(register.window) for register in made.registers]
        return _hash((sorted(moves), windows, [register.covering for register in made.registers]))

    def _make(self) -> TransducerTables:
        strategy, pick = planning.strategy_of(self.select, self.transducer)
        return TransducerTables(
            self.transducer,
            self.read,
            keys=self.keys,
            consume=_CONSUME[self.select.consume],
            position=self.streams.position,
            strategy=strategy,
            pick=pick,
            by=planning.compared_labels(self.select),
            detecting=planning.detects_only(self.select),
            limit=self.limit,
            precomputed=self._precomputed,
        )

    def _scanned(self, absent: frozenset[str]) -> ScanProgram:
        return scan_program(self.tables, self.keys, self.streams.position, self.evaluation, absent)

    @cached_property
    def _whole(self) -> ScanProgram | None:
        """The program for batches with any types, if `scan` takes some for absent."""
        return self._scanned(frozenset()) if self.scan.absent else None

    def _new_scan(self, tables: TransducerTables) -> BatchScan:
        whole = None if self._whole is None else BatchScan(tables, self._whole)
        return BatchScan(tables, self.scan, whole)

    def begin_scan(self) -> BatchScan:
        """The scan of batches for one recogniser, with tables of its own, which number strings and signatures."""
        if not lasting(self.select):
            return self._new_scan(self._make())
        with self._lock:
            if self._first_scan is None:
                self._first_scan = self._new_scan(self.tables.fresh())
        return self._first_scan.fresh()

    def identity(self, tables: TransducerTables) -> dict[str, object]:
        """The facts that a snapshot and its machine, with ``tables`` of this plan, must have in common."""
        t, c = self.schema.typed_by, self.schema.constant_type
        return {
            "query": show(self.select),
            "columns": self.schema.columns.serialize().to_pybytes().hex(),
            "type": self.schema.type,
            **({"typed_by": t, "constant_type": c} if (t, c) != (None, None) else {}),
            "time": self.schema.time,
            # Milliseconds are the default, so both spellings are equal.
            "time_unit": None if self.schema.time_unit == "ms" else self.schema.time_unit,
            "stream": self.schema.stream,
            "forget": self.schema.forget,
            "evaluated": None if self.evaluated is self.select else show(self.evaluated),
            "position": self.position,
            "positions": self.positions,
            "labels": [sorted(labels) for labels in tables.label_sets],
            "slots": [sorted(map(list, places.items())) for places in tables.slots],
            "automaton": self.numbering,
            "remembering": self.remembering,
        }


def _hash(value: object) -> str:
    """A hash of a value by its notation."""
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def columns_kept(plans: Mapping[str, Plan], schema: Schema, *, whole: bool = False) -> list[str]:
    """The columns of the events that queries keep together; see `Driver` for a ``whole`` table."""
    chosen = [plan for plan in plans.values() if whole and (plan.keeps_input or plan.chooses_events)]
    kept = [*chosen, *(plan for plan in plans.values() if plan.shares_events)]
    wanted = {name for plan in kept for name in plan.columns}
    return [name for name in schema.attributes if name in wanted]


class Plans:
    """The plans of one query for the last few schemas."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._transducer: Transducer | None = None
        self._plans: list[Plan] = []
        self._lasting = lasting(select)
        self._checked: Schema | None = None

    def check(self, schema: Schema) -> None:
        """Raises `QueryError` unless the query fits a schema."""
        if schema == self._checked:
            return
        if not self._lasting:
            # Its predicates may have changed since the query was made.
            check_query(self._select)
        check_types(self._select, schema)
        self._checked = schema if self._lasting else None

    def transducer(self) -> Transducer:
        """The automaton of the query. Raises `UnsupportedQueryError` if the engine cannot evaluate it."""
        if self._transducer is None:
            self._transducer = planning.compile_select(self._select)
        return self._transducer

    def plan(self, schema: Schema, position: str | None = None, positions: bool = True) -> Plan:
        """The plan for events of a schema; raises as `Plan`."""
        schema = schema.reading(attributes_in(self._select))
        for plan in self._plans:
            if (plan.schema, plan.position, plan.positions) == (schema, position, positions):
                return plan
        self.check(schema)
        # Most queries have an automaton that serves all schemas.
        evaluated = planning.fitted(self._select, schema)
        transducer = self.transducer() if evaluated is self._select else planning.compile_select(evaluated)
        plan = Plan(self._select, schema, position=position, positions=positions, transducer=transducer)
        if self._lasting:
            self._plans = [plan, *self._plans[: limits.PLANS - 1]]
        return plan
