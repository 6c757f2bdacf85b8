"""The code of scans for tests and values of events: which columns it reads, and its instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from cerflow.base.schema import Schema, ValueKind
from cerflow.engine import opcodes
from cerflow.engine.evaluate.binding import Call, CallOfSet
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED, Precomputed
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import column_row, layout_of, layout_of_text
from cerflow.engine.tables.emitter import Emitter, Parts
from cerflow.engine.tables.instructions import EventColumn, Instructions
from cerflow.language import condition as c
from cerflow.language.node import Node, fold
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.logic.conditions.register_values import WORD, Known, Microseconds, Word


class InexpressibleError(Exception):
    """A query reads something that no program of a scan can; the message says what."""


class ScannedColumns(Instructions):
    """The instructions of programs, and the columns that they and other parts of a scan read."""

    def __init__(self, schema: Schema, position: str | None) -> None:
        super().__init__(schema, (), Strings())
        self.position = position
        self.attributes: list[str | None] = []
        self.rows: list[list[int]] = []
        self.texts: list[str] = []
        self.text_layouts: list[int] = []
        #: The texts that trees read, by the identity of trees, which are held so that it lasts.
        self._read: dict[int, tuple[Node, str | None]] = {}
        #: The conditions on each text that programs read.
        self.conditions: list[list[c.Condition]] = []

    def text(self, name: str) -> int:
        """The number of a column of text."""
        if name not in self.texts:
            data_type = self.schema.columns.field(name).type
            found = layout_of_text(data_type)
            if found is None:
                raise InexpressibleError(f"the column '{name}' of type {data_type}")
            self.texts.append(name)
            self.text_layouts.append(found)
            self.conditions.append([])
        return self.texts.index(name)

    def are_plain(self, texts: Iterable[int]) -> bool:
        """Whether none of some columns of text is a dictionary."""
        return all(self.text_layouts[text] in (layout.TEXT32, layout.TEXT64) for text in texts)

    def text_of(self, condition: Node) -> str | None:
        """The column of text on which alone a condition depends, if that is so."""
        if not isinstance(condition, c.Condition):
            return None
        if id(condition) not in self._read:
            fold(condition, self._note_read)
        _, read = self._read[id(condition)]
        return read or None

    def _note_read(self, current: Node, below: Sequence[str | None]) -> str | None:
        """The text that a tree reads, None if it reads nothing, and "" if it reads anything else."""
        found: str | None
        match current:
            case c.Function("position" | "time") | Call() | CallOfSet() | Precomputed():
                found = ""
            case c.Attribute(_, name):
                found = self._if_text(self.schema.column(name))
            case TypeTest(_, stream):
                found = self._if_text(self.schema.type) if stream is None else ""
            case StreamTest():
                found = self._if_text(self.schema.stream)
            case _:
                names = {name for name in below if name is not None}
                found = None if not names else names.pop() if len(names) == 1 else ""
        self._read[id(current)] = (current, found)
        return found

    def _if_text(self, name: str | None) -> str:
        return name if name is not None and self.schema.kind(name) is ValueKind.STRING else ""

    def column(self, expression: c.Expression, *, as_float: bool) -> int:
        """The number of the column that holds an attribute, a position, a time, or precomputed conditions."""
        key = EventColumn(expression, as_float)
        if key not in self._numbers:
            self._numbers[key] = self._added(*self._row(expression, as_float))
        return self._numbers[key]

    def counted(self) -> int:
        """The number of the column that counts the events as they come."""
        return self._added(None, column_row(layout.POSITION, 1))

    def given(self, name: str) -> int:
        """The number of a column of small integers that comes beside those of the schema."""
        return self._added(name, column_row(layout.INT8, 1))

    def computed(self) -> int:
        """The number of a column that has what a program computes of each event."""
        return self._added(None, column_row(layout.COMPUTED, 1))

    def _added(self, name: str | None, row: list[int]) -> int:
        self.attributes.append(name)
        self.rows.append(row)
        return len(self.rows) - 1

    def _row(self, expression: c.Expression, as_float: bool) -> tuple[str | None, list[int]]:
        """The column of the batch that an expression reads, if any, and the row that says how."""
        name: str | None = None
        condition = 0
        match expression:
            case c.TruthValue(Precomputed(number)):
                name, condition = PRECOMPUTED, number + 1
            case c.TruthValue(of_text):
                read = self.text_of(of_text)
                assert read is not None
                text = self.text(read)
                self.conditions[text].append(of_text)
                return None, column_row(layout.TRUTH, text, condition=len(self.conditions[text]) - 1)
            case c.Attribute():
                name = self.schema.column(expression.name)
            case c.Function("time") if self.schema.time is not None:
                name = self.schema.time
            case c.Function():
                name = self.position
        if name is None:
            return None, column_row(layout.POSITION, 0, floating=as_float)
        data_type = self.schema.columns.field(name).type
        found = layout_of(data_type, self.unit)
        if found is None:
            raise InexpressibleError(f"the column '{name}' of type {data_type}")
        floating = as_float or self.schema.kind(name) is ValueKind.FLOAT
        return name, column_row(*found, floating=floating, condition=condition)


class ScanEmitter(Emitter):
    """Writes the programs of conditions and values of one event, down to attributes and conditions on one text."""

    to: ScannedColumns

    def _is_read(self, current: Node) -> bool:
        if isinstance(current, c.Function):
            return current.name in ("position", "time")
        return isinstance(current, c.Attribute | Precomputed) or self.to.text_of(current) is not None

    def _expression(self, current: c.Expression) -> Parts:
        match current:
            case Known(operand):
                return [c.IsNull(operand, negated=True)]
            case Word(operand, high):
                return self._word(operand, high)
            case Microseconds(operand):
                size = {"us": 1, "ns": 1000}[self.to.unit]
                coarser = size > 1 and self.to.kind(operand) is not ValueKind.DURATION
                return [operand, c.Literal(size), opcodes.QUOTIENT_I] if coarser else [operand]
        return super()._expression(current)

    def _word_of(self, value: int | float | str | bool | timedelta | None) -> int:
        if isinstance(value, str):
            raise InexpressibleError(f"the text '{value}' beside other values")
        return super()._word_of(value)

    def _word(self, operand: c.Expression, high: bool) -> Parts:
        zero, word = c.Literal(0), c.Literal(WORD)
        known_or_zero: Parts = [c.IsNull(operand, negated=True), operand, zero, opcodes.SELECT]
        low: Parts = [*known_or_zero, word, opcodes.REMAINDER_I]
        if self._is_float(operand):
            return [zero] if high else known_or_zero
        return [*known_or_zero, *low, opcodes.SUBTRACT_I, word, opcodes.QUOTIENT_I] if high else low


def code_of(output: Sequence[int], code: Sequence[Sequence[int]]) -> list[list[int]]:
    """The instructions for a row of `ScanArrays.outputs`: to read a column, or some of all the ``code``."""
    if output[layout.O_COLUMN] >= 0:
        return [[opcodes.COLUMN, output[layout.O_COLUMN]]]
    return [list(step) for step in code[output[layout.O_CODE] : output[layout.O_CODE_END]]]
