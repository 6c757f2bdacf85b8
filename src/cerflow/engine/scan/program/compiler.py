"""The program by which the kernels of a scan read an event: made once for the tables of a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import MIRRORED, Operator
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.binding import WholeEvent, calls_in
from cerflow.engine.evaluate.measures import window_size
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.events.signatures import Evaluation
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.absence import Absence, absence
from cerflow.engine.scan.program.contiguous import Contiguity, contiguity
from cerflow.engine.scan.program.effects import counted_states, empties_states
from cerflow.engine.scan.program.emitting import InexpressibleError, ScanEmitter, ScannedColumns
from cerflow.engine.scan.program.flow import Flow, flow_of
from cerflow.engine.scan.program.guards import Guards, relevant_guards
from cerflow.engine.scan.program.joins import Joinable, join_of
from cerflow.engine.tables.instructions import OPERATORS, EventColumn
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow, CountWindow, Window
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.logic.conditions.register_values import DatePart

#: What is evaluated on events, but not by programs, except where it depends on one text alone.
_BEYOND = (c.Like, c.Regexp, DatePart, StreamTest, TypeTest, WholeEvent)
_Written = TypeVar("_Written")
_FUNCTIONS = ("abs", "ceil", "coalesce", "floor", "position", "round", "time")


class Filled(NamedTuple):
    """What is evaluated for the events that a scan has found: event columns by number, the keys, the window."""

    columns: Sequence[int]
    keys: bool
    window: bool


def computed_column(number: int) -> str:
    """The column of a batch that says for each row whether a test holds, as 1 or 0."""
    return f"\0test {number}"


@dataclass(frozen=True)
class ScanProgram:
    """The rows of `ScanArrays` that stay as they are, and which columns they read.

    ``attributes`` and ``texts`` are the names of the columns that ``columns`` and ``text_layouts`` describe (None: it
    is none of the batch). For each text there are the tests that it decides, those before which its class must be
    known, and the numbers of its conditions among the tests of ``judge``, twice: whether they are true, and false.

    Programs cannot say everything. The tests ``computed``, each with the reason, come with the batch as columns called
    `computed_column`. Values that are ``filled`` in later are not among the outputs.

    ``guards`` and what follows from them hold for batches in which no event has a type that is ``absent``, where runs
    are in no other ``states`` (bits) before.
    """

    attributes: Sequence[str | None]
    columns: Sequence[Sequence[int]]
    texts: Sequence[str]
    text_layouts: Sequence[int]
    text_tests: Sequence[frozenset[int]]
    text_readers: Sequence[frozenset[int]]
    truths: Sequence[Sequence[tuple[int, int]]]
    judge: TextTests
    tests: Mapping[int, Sequence[int]]
    computed: Mapping[int, str]
    outputs: Sequence[Sequence[int]]
    filled: Filled
    guards: Guards | None
    contiguity: Contiguity | str
    flow: Flow | str
    join: Joinable | str
    absence: Absence | str
    code: Sequence[Sequence[int]]
    constants: Sequence[int]
    absent: frozenset[str]
    states: int


def scan_program(
    tables: TransducerTables,
    keys: Sequence[tuple[str, ...]],
    position: str | None,
    evaluation: Evaluation,
    absent: frozenset[str] = frozenset(),
) -> ScanProgram:
    """The program of some tables, for batches in which no event has a type that is ``absent``."""
    known = tables.lacking(absent) if absent else tables
    return _ProgramCompiler(known, position).program(keys, evaluation, absent)


class _ProgramCompiler:
    def __init__(self, tables: TransducerTables, position: str | None) -> None:
        self.tables = tables
        self.schema = tables.schema
        self.to = ScannedColumns(tables.schema, position)

    def program(self, keys: Sequence[tuple[str, ...]], evaluation: Evaluation, absent: frozenset[str]) -> ScanProgram:
        tests: dict[int, list[int]] = {}
        readers: dict[str, set[int]] = {}
        computed: dict[int, str] = {}
        # Types rule out most events.
        for name in sorted(evaluation.by_string, key=lambda name: name != self.schema.type):
            _, reason = self._tried(lambda name=name: self.to.text(name))  # type: ignore[misc]
            computed |= dict.fromkeys(evaluation.by_string[name] if reason else (), reason)
        for number in evaluation.others:
            test = self._plain(self.tables.tests[number])
            found, reason = self._tried(lambda test=test: (self._check(test), self._test(test)))  # type: ignore[misc]
            if found is None:
                computed[number] = reason
                continue
            texts_read, tests[number] = found
            for name in texts_read:
                readers.setdefault(name, set()).add(number)
        for number in computed:
            column = self.to.given(computed_column(number))
            tests[number] = [layout.COMPARE_INT, OPERATORS[Operator.EQ], column, 1]
        outputs, filled = self._outputs(keys)
        judge, truths = self._judge(evaluation)
        texts = self.to.texts
        decided = [frozenset(evaluation.by_string.get(name, ())) for name in texts]
        compared = frozenset(number for number, row in tests.items() if row[layout.K_KIND] != layout.RUN)
        by_text = frozenset().union(*decided)
        measured = partial(self._window, 0, 0)
        whole = "values that no program can compute" if any(filled) else None
        waits = whole or absence(self.tables, outputs, by_text | compared, measured)
        guards = waits.guards if isinstance(waits, Absence) else relevant_guards(self.tables, by_text, compared)
        lie = whole or contiguity(self.tables, outputs, guards, self.to, measured)
        single = "single events wait" if isinstance(waits, Absence) else None
        counted = "matches are counted by the runs in each state" if self._counts(outputs, guards, lie) else None
        through = whole or single or counted or flow_of(self.tables, outputs, guards, self.to, measured)
        joined = join_of(self.tables, outputs, guards, through, self.to)
        return ScanProgram(
            self.to.attributes,
            self.to.rows,
            texts,
            self.to.text_layouts,
            decided,
            [frozenset(readers.get(name, ())) for name in texts],
            truths,
            judge,
            tests,
            computed,
            outputs,
            filled,
            guards,
            lie,
            through,
            joined,
            waits,
            self.to.code,
            self.to.constants,
            absent,
            sum(1 << state for state in self.tables.moves.reached),
        )

    def _counts(self, outputs: Sequence[Sequence[int]], guards: Guards | None, lie: Contiguity | str) -> bool:
        """Whether the scan counts matches by what texts say of each event, which costs less than ruling rows out."""
        decides = guards is not None and guards.decides and isinstance(lie, str)
        return decides and empties_states(self.tables) and counted_states(self.tables, outputs) != 0

    def _tried(self, write: Callable[[], _Written]) -> tuple[_Written | None, str]:
        """What a part becomes; None if no program can say it, and why. Then nothing is left of it in the code."""
        length = len(self.to.code)
        try:
            written = write()
            if len(self.to.code) <= limits.SCAN_INSTRUCTIONS:
                return written, ""
            reason = f"programs of {len(self.to.code)} instructions"
        except InexpressibleError as error:
            reason = str(error)
        del self.to.code[length:]
        return None, reason

    def _outputs(self, keys: Sequence[tuple[str, ...]]) -> tuple[list[list[int]], Filled]:
        """The rows of `ScanArrays.outputs`, and what no program can compute."""
        some, _ = self._tried(lambda: [row for k, key in enumerate(keys) for row in self._key(k, key)])
        outputs, columns = list(some or ()), []
        for k, column in enumerate(self.tables.columns):
            rows, _ = self._tried(lambda k=k, column=column: self._column(k, column))  # type: ignore[misc]
            outputs += rows or ()
            columns += [k] if rows is None else []
        window, measured = self.tables.transducer.window, list[list[int]]()
        timed = window is not None and not self._is_local(window)
        if window is not None and timed:
            both = ((layout.TO_MEASURE, False), (layout.TO_BOUND, True))
            found, _ = self._tried(lambda: [self._window(to, 0, window, bound) for to, bound in both])
            measured = found or []
        return outputs + measured, Filled(columns, some is None, timed and not measured)

    def _judge(self, evaluation: Evaluation) -> tuple[TextTests, list[list[tuple[int, int]]]]:
        """The tests of text, with those that say whether conditions are true or false, and the numbers of these."""
        if not any(self.to.conditions):
            return evaluation.texts, [[] for _ in self.to.texts]
        free = len(self.tables.tests)
        truths: list[list[tuple[int, int]]] = []
        tests: dict[str, dict[int, c.Condition]] = {}
        for name, conditions in zip(self.to.texts, self.to.conditions):
            own = dict(evaluation.by_string.get(name, ()))
            truths.append([])
            for condition in conditions:
                own |= {free: condition, free + 1: c.Not(condition)}
                truths[-1].append((free, free + 1))
                free += 2
            if own:
                tests[name] = own
        return TextTests(tests, self.schema, self.to.unit), truths

    def _plain(self, test: c.Condition) -> c.Condition:
        """A test in which the stream of a type is a text like others."""

        def visit(current: Node) -> Node:
            if isinstance(current, StreamTest) and self.schema.stream is None:
                return c.Constant(True)
            if not isinstance(current, TypeTest) or current.stream is None:
                return current
            known = self.schema.stream is not None
            return c.And(TypeTest(current.type), StreamTest(current.stream)) if known else TypeTest(current.type)

        changed = transform(test, visit)
        assert isinstance(changed, c.Condition)
        return changed

    # -- tests ---------------------------------------------------------------------------------------------------

    def _test(self, test: c.Condition) -> list[int]:
        """A row of `ScanArrays.tests`."""
        if isinstance(test, c.IsNull) and isinstance(test.operand, c.Attribute):
            is_float = self.to.kind(test.operand) is ValueKind.FLOAT
            kind = layout.NULL_FLOAT if is_float else layout.NULL_INT
            return [kind, int(not test.negated), self.to.column(test.operand, as_float=is_float), 0]
        if isinstance(test, c.Comparison):
            plain = self._comparison(test)
            if plain is not None:
                return plain
        return [layout.RUN, 0, *self._code(test)]

    def _comparison(self, test: c.Comparison) -> list[int] | None:
        """A comparison of a column with a number."""
        operator, left, right = test.operator, test.left, test.right
        if isinstance(left, c.Literal):
            operator, left, right = MIRRORED[operator], right, left
        if (
            not isinstance(left, c.Attribute)
            or not isinstance(right, c.Literal)
            or not isinstance(right.value, int | float)
        ):
            return None
        is_float = self.to.kind(left) is ValueKind.FLOAT or isinstance(right.value, float)
        column = self.to.column(left, as_float=is_float)
        bits = int(np.float64(right.value).view(np.int64)) if is_float else int(right.value)
        kind = layout.COMPARE_FLOAT if is_float else layout.COMPARE_INT
        return [kind, OPERATORS[operator], column, bits]

    def _code(self, tree: c.Condition | c.Expression, as_float: bool = False) -> tuple[int, int]:
        start = len(self.to.code)
        try:
            ScanEmitter(self.to, {}, {}).write(tree, as_float=as_float)
        except UnsupportedQueryError as error:
            raise InexpressibleError(error.reason) from None
        return start, len(self.to.code)

    def _check(self, tree: Node) -> set[str]:
        """See to it that programs can compute a tree; returns the columns of text whose conditions it reads."""
        if calls_in(tree):
            raise InexpressibleError("a predicate")
        texts: set[str] = set()
        pending: list[Node] = [tree]
        while pending:
            current = pending.pop()
            text = self.to.text_of(current)
            if text is not None:
                texts.add(text)
                continue
            pending += current.children
            unknown = isinstance(current, c.Function) and current.name not in _FUNCTIONS
            if unknown or isinstance(current, _BEYOND):
                raise InexpressibleError(show(current))
            if isinstance(current, c.Attribute):
                kind = self.schema.kind(self.schema.column(current.name))
                if kind.coded or kind is ValueKind.OTHER:
                    raise InexpressibleError(f"the {kind} '{current.name}' beside other values")
        return texts

    # -- what is written -----------------------------------------------------------------------------------------

    def _key(self, k: int, names: Sequence[str]) -> list[list[int]]:
        as_float = self.schema.key_kind(names) is ValueKind.FLOAT
        return [self._value(layout.TO_KEYS, k, c.Attribute(None, name), as_float) for name in names]

    def _column(self, k: int, column: EventColumn) -> list[list[int]]:
        if column.window is not None:
            if self._is_local(column.window):
                return []  # the kernel counts positions in the substream
            return [self._window(layout.TO_COLUMNS, k, column.window, column.bound)]
        assert column.expression is not None
        return [self._value(layout.TO_COLUMNS, k, column.expression, column.as_float)]

    def _is_local(self, window: Window) -> bool:
        return self.tables.partitioned and isinstance(window, CountWindow)

    def _value(self, to: int, place: int, expression: c.Expression, as_float: bool) -> list[int]:
        if isinstance(expression, c.Attribute):
            name = self.schema.column(expression.name)
            if self.schema.kind(name) is ValueKind.STRING:
                return _output(to, place, layout.AS_TEXT, self.to.text(name))
        self._check(expression)
        kind = self.to.kind(expression)
        if kind in (ValueKind.FLOAT, ValueKind.OTHER) and not as_float:
            # An expression without a kind, such as NULL / 2, is null everywhere.
            return _output(to, place, layout.AS_NULL)
        form = layout.AS_FLOAT if as_float else layout.AS_INT
        if isinstance(expression, c.Attribute):
            return _output(to, place, form, self.to.column(expression, as_float=as_float))
        return _output(to, place, form, code=self._code(expression, as_float))

    def _window(self, to: int, place: int, window: Window, bound: bool) -> list[int]:
        if isinstance(window, CountWindow):
            # Windows count the events as they come, whatever their positions in the whole stream.
            column, is_float = self.to.counted(), False
        else:
            name = window.attribute if isinstance(window, AttributeWindow) else self.schema.time
            assert name is not None
            is_float = self.schema.kind(name) is ValueKind.FLOAT
            column = self.to.column(c.Attribute(None, name), as_float=is_float)
        size = window_size(window, self.schema, self.to.unit)
        if is_float:
            bits = int(np.float64(float(size)).view(np.int64))
            return _output(to, place, layout.AS_FLOAT_BOUND if bound else layout.AS_ORDER, column, size=bits)
        whole = ceil(size)
        if bound and whole > MOST:
            raise InexpressibleError("a window beyond 64 bits")
        return _output(to, place, layout.AS_BOUND if bound else layout.AS_INT, column, size=whole)


def _output(
    to: int, place: int, form: int, column: int = -1, code: tuple[int, int] = (0, 0), size: int = 0
) -> list[int]:
    """A row of `ScanArrays.outputs`."""
    return [to, place, form, column, *code, size]
