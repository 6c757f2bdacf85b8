"""How the files of one input become rows of events: every file is inspected first, then all are read in the same way.

Both passes take one block of a file after the other, so that the tasks of Spark can make them as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.stream_inputs import EventRoles, Input, Roles, column_names, fitted_table, free_name, schema_of
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, did_you_mean
from cerflow.base.nested import is_nested, joined, parts_of, root_of
from cerflow.base.schema import UNTYPED, Schema, ValueKind, kind_of
from cerflow.base.units import TimeUnit
from cerflow.files.blocks import read_blocks, schema_of_file
from cerflow.files.column_types import Look, Use, called, look_at, right, type_of
from cerflow.files.conversion import converted, plain_text
from cerflow.files.raw_rows import Block, FilePart
from cerflow.files.sources import InputFormat, Source, source_name
from cerflow.logic.analysis.columns import ColumnUsage

#: The columns that stand before the attributes in a table of refused rows.
REFUSED = (("row", pa.int64()), ("reason", pa.string()), ("text", pa.string()))


@dataclass(frozen=True)
class ColumnRoles:
    """The names of the columns with a role in all inputs together, and how the query uses the others.

    Without a column ``type`` events have no types, unless it has another name than the default.
    ``forget`` is the pause after which a key starts again, as text.
    """

    type: str = "type"
    time: str | None = None
    time_unit: TimeUnit | None = None
    sequence: str | None = None
    usage: ColumnUsage = field(default_factory=ColumnUsage)
    forget: str | None = None

    @property
    def roles(self) -> Roles:
        """The columns with a role."""
        named = {"type": self.type, "time": self.time, "time_unit": self.time_unit, "sequence": self.sequence}
        return cast(Roles, {role: given for role, given in named.items() if given is not None})

    def of_events(self, stream: str | None = None) -> EventRoles:
        """The roles of events whose streams, if they are distinguished, stand in the column ``stream``."""
        return EventRoles(type=self.type, time=self.time, time_unit=self.time_unit, forget=self.forget, stream=stream)

    @property
    def required(self) -> dict[str, str]:
        """The columns without whose value a row cannot be used, with their roles; NaN is not a value."""
        return {self.type: "type"} | ({} if self.time is None else {self.time: "time"})

    def schema(self, columns: pa.Schema, stream: str | None) -> Schema:
        """The columns of the events with their roles; raises `InputError` for those that are not there."""
        return schema_of(columns, **self.of_events(stream))

    def use(self, name: str) -> Use:
        """The use of a column of all inputs together."""
        if name == self.type:
            return "text"
        if name == self.time:
            return "time"
        if name == self.sequence or name in self.usage.ordered:
            return "ordered"
        if name in self.usage.numbers:
            return "number"
        return "text" if name in self.usage.text else "other"

    def name_of(self, one: Input[Source], column: str) -> str:
        """What a column of an input is called in all of them."""
        own = {one.type: self.type, one.time: self.time, one.sequence: self.sequence}
        return own.get(column) or one.rename.get(column, column)

    def use_in(self, one: Input[Source], column: str) -> Use:
        """The use of a column of an input, by its name in the files."""
        return self.use(self.name_of(one, column))

    def completed(self, schema: pa.Schema, empty: bool) -> pa.Schema:
        """The schema with types for columns without values.

        ``empty`` says that a file has no rows and no header: then the columns that are asked for might be in it.
        """
        tree: dict[str, Any] = {}
        if empty:
            roots = {root_of(name) for name in self.usage.names if is_nested(name)}
            asked = [name for name in (self.type, self.time, self.sequence, *sorted(self.usage.names)) if name]
            # Names of columns with a role are written meta.at.
            paths = [(parts_of(joined(n.split(".")) if n.split(".")[0] in roots else n), n) for n in asked]
            for (*above, last), name in sorted(paths, key=lambda pair: -len(pair[0])):
                # Where none is asked for, or other files have rows without a type, no event has one.
                untyped = name == self.type and (name == UNTYPED or bool(schema.names))
                if above or not (untyped or name.split(".")[0] in schema.names):
                    level = tree
                    for part in above:
                        level = level.setdefault(part, {})
                    level.setdefault(last, self._type(name))
        known = [f.with_type(self._type(f.name)) if pa.types.is_null(f.type) else f for f in schema]
        # Where a file has rows, they show the types of fields.
        added = [(name, _struct(below)) for name, below in tree.items() if name not in schema.names]
        return pa.schema([*known, *added])

    def _type(self, name: str) -> pa.DataType:
        if name in self.usage.booleans:
            return pa.bool_()
        use = self.use(name)
        if use == "time":
            return pa.timestamp("us")
        return pa.float64() if use in ("number", "ordered") else pa.string()


def _struct(tree: Any) -> pa.DataType:
    return pa.struct([(name, _struct(below)) for name, below in tree.items()]) if isinstance(tree, dict) else tree


@dataclass(frozen=True)
class FileSurvey:
    """The result of the first pass over a file: its columns, the number of its rows, and how many of them are broken.

    A file without columns is empty, or has nothing but broken rows. ``schema`` is that of a file that has one.
    """

    name: str
    columns: Mapping[str, Look]
    rows: int
    broken: int = 0
    schema: pa.Schema | None = None


def texts(one: Input[Source], columns: ColumnRoles) -> frozenset[str]:
    """The columns of an input whose values are to be read as text: next to fractions integers would become doubles."""
    declared = {name for name, kind in one.events.column_types.items() if kind in (pa.string(), pa.int64())}
    known = {one.type or columns.type} - ({columns.type} if one.constant_type is not None else set())
    used = {name for name in {*one.rename, *columns.usage.text} if columns.use_in(one, name) == "text"}
    return frozenset(declared | known | used)


def _use_as(declared: pa.DataType) -> Use:
    if pa.types.is_string(declared):
        return "text"
    return "time" if pa.types.is_timestamp(declared) else "number"


def _refuse_one_column(found: FileSurvey, one: Input[Source], columns: ColumnRoles) -> None:
    """Raise InputError for CSV whose header is taken for one column although it probably names several."""
    name = next(iter(found.columns), "")
    sign = next((sign for sign in ";\t|" if sign in name), None)
    known = {one.type, one.time, one.sequence, columns.type, *one.rename, *columns.usage.names}
    if one.events.format is InputFormat.CSV and len(found.columns) == 1 and sign is not None and name not in known:
        sign = sign.replace("\t", "\\t")
        raise InputError(
            f"{found.name} has only one column, {name!r}; "
            f"if '{sign}' separates its columns, say delimiter='{sign}' (--delimiter '{sign}')"
        )


def survey(
    one: Input[Source], columns: ColumnRoles, content: FilePart, blocks: Iterable[Block] | None = None
) -> FileSurvey:
    """Look at the columns of a file, of one with types at the `important` ones alone.

    Unless the ``blocks`` of the file are given, they are read.
    """
    source = one.events
    looks: dict[str, Look] = {}
    rows = broken = 0
    schema = None
    read = blocks
    if read is None:
        read = read_blocks(source, content, texts(one, columns), partial(important, one, columns))
    for block in read:
        rows += len(block.table) + len(block.malformed)
        broken += len(block.spoilt) + len(block.malformed)
        for column, values in zip(block.table.schema, block.table.columns):
            if source.has_no_schema or important(one, columns, column):
                use = columns.use_in(one, column.name)
                if column.name in source.column_types:
                    use = _use_as(source.column_types[column.name])
                typed = source.format is not InputFormat.CSV
                found = look_at(values, block.rows, content.name, use, typed=typed, notation=source.notation)
                looks[column.name] = looks.get(column.name, Look()) + found
    if not source.has_no_schema:
        # Where they are read here, blocks have some columns only.
        schema = block.table.schema if blocks or content.path is None else schema_of_file(source, content.path)
        looks = {name: looks.get(name, Look()) for name in schema.names}
    return FileSurvey(content.name, looks, rows, broken, schema)


def survey_of_pieces(found: Sequence[FileSurvey]) -> FileSurvey:
    """The survey of a file whose pieces were surveyed one by one."""
    looks: dict[str, Look] = {}
    rows = 0
    for piece in found:
        for column, look in piece.columns.items():
            looks[column] = looks.get(column, Look()) + look.behind(rows)
        rows += piece.rows
    return replace(found[0], columns=looks, rows=rows, broken=sum(piece.broken for piece in found))


def important(one: Input[Source], columns: ColumnRoles, column: pa.Field) -> bool:
    """Whether the values of a column of a file with types decide on how it is read, or which rows are."""
    return columns.name_of(one, column.name) in columns.required or needs_look(one, columns, column)


def needs_look(one: Input[Source], columns: ColumnRoles, column: pa.Field) -> bool:
    """Whether a column of a file with types may have to become something else: text that is used as anything else."""
    if column.name in one.events.column_types:
        return True
    return kind_of(column.type) is ValueKind.STRING and columns.use_in(one, column.name) not in ("text", "other")


@dataclass(frozen=True)
class SplitRows:
    """Rows that can be used, their numbers in the input, and those that cannot (a table as in `ReadEvents`), if any."""

    table: pa.Table
    rows: Ints
    refused: pa.Table | None


@dataclass(frozen=True)
class InputPlan:
    """How to read all files of an input.

    ``names`` says what columns of the files are called in the table, ``types`` as what they are read (those missing
    stay what they are), ``schema`` is that of the table if the files have none of their own. ``as_text`` are the
    columns of JSON whose values are read as JSON text. ``clean`` says that no row will be refused. ``padded`` are the
    columns of integers in which some begin with 0, with such a one. ``remedy`` stands after the reason for refusing a
    value that is not of the type of its column, where not all rows decided on the types.
    """

    one: Input[Source]
    columns: ColumnRoles
    names: Mapping[str, str]
    types: Mapping[str, pa.DataType]
    schema: pa.Schema | None
    as_text: frozenset[str]
    clean: bool
    padded: Mapping[str, str]
    remedy: str = ""

    @classmethod
    def of(
        cls, one: Input[Source], columns: ColumnRoles, surveys: Sequence[FileSurvey], several: bool, remedy: str = ""
    ) -> InputPlan:
        """The plan after all files have been looked at; ``several`` says that there are other inputs.

        With a ``remedy`` more rows will come, of JSON perhaps with more of the columns that are asked for.

        Raises InputError for columns that do not exist, and for columns without a single valid value.
        """
        source, declared, names = one.events, one.events.column_types, dict[str, str]()
        for found in surveys:
            _refuse_one_column(found, one, columns)
            if found.columns:
                name = source_name(source) if several else None
                names.update(zip(found.columns, column_names(list(found.columns), one, columns.roles, name)))
        types, padded = {}, {}
        clean = not any(found.broken for found in surveys)
        rows = sum(found.rows for found in surveys)
        for column, called_now in names.items():
            look = sum((s.columns[column] for s in surveys if column in s.columns), Look())
            use = columns.use(called_now)
            if called_now == columns.type and declared.get(column, pa.string()) != pa.string():
                raise InputError(f"the type column '{column}' holds text; it cannot be read as anything else")
            given = next((s.schema.field(column) for s in surveys if s.schema and column in s.schema.names), None)
            if given is None or column in declared or (look.values and needs_look(one, columns, given)):
                kind = types[column] = type_of(called_now, look, use, declared.get(column), source.notation)
                clean = clean and right(look, kind) == look.values
                if look.padded is not None and kind == pa.int64() and column not in declared and use == "other":
                    padded[called_now] = look.padded
            else:
                kind = given.type
            if called_now in columns.required:
                clean = clean and look.values == rows
                # There may be NaN.
                clean = clean and not (called_now == columns.time and pa.types.is_floating(kind))
        lines = source.format is InputFormat.JSON
        schema = None
        if source.has_no_schema:
            fields = {called_now: types[column] for column, called_now in names.items()}
            if one.constant_type is not None and names:
                fields[columns.type] = pa.string()
            schema = pa.schema(fields.items())
            if remedy:
                clean = False
                later = [(column, kind) for column, kind in declared.items() if lines and column not in names]
                schema = columns.completed(pa.schema([*schema, *later]), lines or not names)
                names |= {name: name for name in schema.names if lines and name not in fields}
                types = {column: schema.field(called_now).type for column, called_now in names.items()}
        # Beside fractions integers would become doubles.
        as_text = (pa.string(), pa.int64()) if remedy else (pa.string(),)
        texts = frozenset(column for column, kind in types.items() if lines and kind in as_text)
        return cls(one, columns, names, types, schema, texts, clean, padded, remedy)

    @property
    def refused(self) -> pa.Schema:
        """The columns of a table of refused rows."""
        names = [name for name, _ in REFUSED]
        for called_now in self.names.values():
            names.append(free_name(called_now, names))
        return pa.schema([*REFUSED, *((name, pa.string()) for name in names[len(REFUSED) :])])

    def columns_of(self, schema: pa.Schema | None) -> pa.Schema:
        """The columns of the table that a file becomes, given its own if it has types."""
        nothing = pa.Table.from_batches([], schema or pa.schema([]))
        return self.part(Block(nothing, np.array([], np.int64)), 0, None).table.schema

    def part(self, block: Block, offset: int, file: str | None) -> SplitRows:
        """The rows of a block, converted, without those that cannot be used.

        ``offset`` is the number of rows before the file, and ``file`` what messages call it, if there are several.
        """
        original = block.table
        numbers = block.rows
        reasons = {place: list(said) for place, said in block.spoilt.items()}
        columns: dict[str, pa.Array] = {}
        for column, values in zip(original.column_names, original.columns):
            name, target, found = self.names[column], self.types.get(column), values
            if target is None and name == self.columns.type and pa.types.is_integer(values.type):
                target = pa.string()
            if target is not None:
                found = one_array(values)
                if pa.types.is_string(values.type) and not pa.types.is_string(target):
                    times = self.columns.use(name) == "time" or pa.types.is_timestamp(target)
                    found = self.one.events.notation.usual(found, times=times)
                found = converted(found, target)
            columns[name] = found
            if found.null_count > values.null_count:
                wanted, remedy = "a number", self.remedy.format(column=column)
                if column in self.one.events.column_types or self.remedy:
                    wanted = called(self.types[column])
                elif self.columns.use(name) == "time":
                    wanted = "a time"
                for place in _places(pc.and_(values.is_valid(), found.is_null())):
                    if place not in block.spoilt:
                        value = plain_text(one_array(values.slice(place, 1)))[0].as_py()
                        reasons.setdefault(place, []).append(f"{name} is not {wanted}: '{value}'{remedy}")
        if self.one.constant_type is not None and self.names:
            columns[self.columns.type] = pa.repeat(pa.scalar(self.one.constant_type), len(original))
        table = pa.table(columns) if columns else original
        if self.schema is not None:
            name = source_name(self.one.events)
            table = fitted_table(table, self.schema, name) if columns else pa.Table.from_batches([], self.schema)
        for name, role in self.columns.required.items():
            if name in table.column_names:
                given = table.column(name)
                if given.null_count or pa.types.is_floating(given.type):
                    for place in _places(pc.is_null(given, nan_is_null=True)):
                        reasons.setdefault(place, [f"the {role} is null"])
        malformed, places = block.malformed, sorted(reasons)
        if not (malformed or places):
            return SplitRows(table, numbers + offset, None)
        rows = [row for row, *_ in malformed] + numbers[places].tolist()
        said = [why for *_, why in malformed] + ["; ".join(reasons[place]) for place in places]
        if file is not None:
            said = [f"{why} (row {row} of {file})" for row, why in zip(rows, said)]
        refused: list[Any] = [np.array(rows) + offset, said, [text for _, text, _ in malformed] + [None] * len(places)]
        taken = pa.array([None] * len(malformed) + places, pa.int64())
        for column in self.names:
            known = column in original.column_names
            refused.append(plain_text(one_array(original.column(column)).take(taken)) if known else [None] * len(rows))
        valid = np.ones(len(table), np.bool_)
        valid[places] = False
        kept = table.filter(pa.array(valid)) if places else table
        return SplitRows(kept, numbers[valid] + offset, pa.table(refused, schema=self.refused))


def refuse_unknown_types(plans: Sequence[InputPlan]) -> None:
    """Raise InputError for a column whose type is given, but which none of the inputs has that it is given for."""
    for column in dict.fromkeys(column for plan in plans for column in plan.one.events.column_types):
        asked = [plan for plan in plans if column in plan.one.events.column_types]
        known = {name: None for plan in asked for name in plan.names}
        if known and column not in known:
            hint = did_you_mean(column, known)
            raise InputError(f"the column '{column}', whose type is given, is not in the input{hint}")


def _places(mask: pa.ChunkedArray) -> list[int]:
    found: list[int] = np.flatnonzero(mask.to_numpy()).tolist()
    return found
