"""Several inputs as several streams of one table: the names and types of their columns there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import NoneType
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

import pyarrow as pa

from cerflow.base.errors import ArgumentError, InputError, did_you_mean, expect
from cerflow.base.event_tables import supposed, to_table, unknown_types
from cerflow.base.schema import UNTYPED, Schema, kind_of
from cerflow.base.units import MICROSECONDS, TimeUnit, check_unit, finest
from cerflow.language.node import Node
from cerflow.language.parser import duration_in_microseconds
from cerflow.logic.analysis.columns import columns_named

T = TypeVar("T")


class EventRoles(TypedDict, total=False):
    """The arguments that say what the columns of events mean; `Query.match` explains them."""

    type: str | None
    time: str | None
    time_unit: TimeUnit | None
    stream: str | None
    forget: timedelta | str | None
    constant_type: str | None


def schema_of(
    columns: pa.Schema,
    *,
    type: str | None = "type",
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    stream: str | None = None,
    forget: timedelta | str | None = None,
    constant_type: str | None = None,
    **unknown: object,
) -> Schema:
    """The schema of events with these columns and `EventRoles`; raises `InputError` for columns that are not there.

    Raises `ArgumentError` for a type column and a constant type, and `TypeError` for ``unknown`` arguments, which come
    through the functions that users call.
    """
    for name in unknown:
        raise TypeError(f"there is no argument '{name}'{did_you_mean(name, EventRoles.__annotations__, 'others')}")
    if constant_type is not None and type not in (None, "type"):
        raise ArgumentError("events have a type column or one type for all of them, not both")
    expect(constant_type, (str, NoneType), "constant_type must be text")
    column = UNTYPED if type is None else type
    return Schema(columns, column, time, stream, time_unit, duration_in_microseconds(forget), constant_type)


def columns_wanted(trees: Iterable[Node], sequence: str | None, roles: EventRoles) -> set[str] | None:
    """The columns that some queries read or report by name, and those with a role; None for all of them."""
    given = (roles.get("type", "type"), roles.get("time"), roles.get("stream"), sequence)
    found = [columns_named(tree, *given) for tree in trees]
    return None if None in found else {name for some in found for name in some or ()}


class Roles(TypedDict):
    """The columns of a table of events that have a role, as `Query.match` and `cerflow.spark.match` take them."""

    type: str
    time: NotRequired[str]
    time_unit: NotRequired[TimeUnit]
    sequence: NotRequired[str]
    stream: NotRequired[str]


@dataclass(frozen=True)
class Input(Generic[T]):
    """One input of several: its events, and what has to be known of its columns.

    ``type``, ``time`` and ``sequence`` name its columns with these roles (None: the name common to all inputs),
    ``time_unit`` is what a time column of numbers counts (None: what is common to all inputs, or else milliseconds),
    and ``constant_type`` is the type of all its events if no column has it. Without either, events have no types where
    no column is called ``"type"``, in all inputs or in none. ``rename`` gives attributes other names,
    ``{"old": "new"}``. All names but the new ones are those of the input.
    """

    events: T
    type: str | None = None
    time: str | None = None
    time_unit: TimeUnit | None = None
    sequence: str | None = None
    constant_type: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in ("type", "time", "sequence", "constant_type"):
            expect(getattr(self, role), (str, NoneType), f"{role} of an input must be text")
        expect(self.rename, Mapping, "rename must be a dict of new names by old ones")
        if self.type is not None and self.constant_type is not None:
            raise ArgumentError("an input has a type column or one type for all its events, not both")
        if self.time_unit is not None:
            check_unit(self.time_unit)


@dataclass(frozen=True)
class Streams(Generic[T]):
    """All inputs together. ``roles`` names the columns with a role: ``query.match(s.events, **s.roles)``."""

    events: T
    roles: Roles


def streams(
    inputs: Mapping[str, Input[Any]],
    *,
    type: str | None = None,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    sequence: str | None = None,
    stream: str = "stream",
) -> Streams[pa.Table]:
    """The events of several inputs as one table, for queries ``FROM a, b``; the keys are the names of the streams.

    The events of each `Input` are anything that `Query.match` takes. ``type``, ``time`` and ``sequence`` are what the
    columns with these roles are called in the table; unless given, what all inputs call them, or else ``"type"``,
    ``"time"`` and ``"sequence"``. ``stream`` gets the name of each event's stream; with an underscore in front if an
    input has a column of that name. Columns of the same name become one, null where an input lacks it; numbers of
    different types become the wider type, and times of different units count the finest of them.

    Raises `InputError` for columns that are not there, that would have the same name, or whose types do not fit
    together, for events without types together with others, and `ArgumentError` if there are no inputs.
    """
    expect(stream, str, "the name of the column of streams must be text")
    common = common_roles(inputs, type=type, time=time, time_unit=time_unit, sequence=sequence)
    given = {name: to_table(one.events) for name, one in inputs.items()}
    if not any(table.num_columns for table in given.values()):
        # No query finds anything in nothing, whatever it reads.
        return Streams(pa.table({}), {**common, "stream": stream})
    tables = {}
    for name, one in inputs.items():
        table = given[name]
        if unknown_types(table):
            own = {"type": None if one.constant_type else one.type or common["type"], "time": one.time}
            table = supposed(table.schema, own, () if table.num_columns else one.rename).empty_table()
        names = column_names(table.column_names, one, common, name)
        if one.constant_type is not None:
            constant = pa.repeat(pa.scalar(one.constant_type, pa.string()), len(table))
            table = table.append_column(free_name("type", table.column_names), constant)
        tables[name] = in_common_unit(table.rename_columns(list(names)), one.time_unit or time_unit, common, name)
    refuse_partly_typed(((name, table.column_names) for name, table in tables.items()), common["type"])
    schema = common_schema((name, table.schema) for name, table in tables.items())
    stream = free_name(stream, schema.names)
    parts = []
    for name, table in tables.items():
        part = fitted_table(table, schema, name)
        parts.append(part.append_column(stream, pa.repeat(pa.scalar(name, pa.string()), len(part))))
    return Streams(pa.concat_tables(parts), {**common, "stream": stream})


def common_roles(
    inputs: Mapping[str, Input[Any]],
    *,
    type: str | None = None,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    sequence: str | None = None,
) -> Roles:
    """The names that columns with a role have in all inputs together; raises `InputError` if only some have a role."""
    for role, column in (("type", type), ("time", time), ("sequence", sequence)):
        expect(column, (str, NoneType), f"the name of the {role} column must be text")
    expect(inputs, Mapping, "inputs are given as a dict by the names of their streams")
    for name, one in inputs.items():
        expect(name, str, "the name of a stream must be text")
        expect(one, Input, f"the input '{name}' must be a cerflow.Input")
    if not inputs:
        raise ArgumentError("there must be at least one input")
    if time_unit is not None:
        check_unit(time_unit)
    types = {one.type or type or "type" for one in inputs.values() if one.constant_type is None}
    roles: Roles = {"type": type or (next(iter(types)) if len(types) == 1 else "type")}
    time = _common("time", time, {name: one.time for name, one in inputs.items()})
    if time is not None:
        roles["time"] = time
    sequence = _common("sequence", sequence, {name: one.sequence for name, one in inputs.items()})
    if sequence is not None:
        roles["sequence"] = sequence
    units = {one.time_unit or time_unit for one in inputs.values()}
    if units != {None}:
        if time is None:
            raise InputError("a unit of times is given, but no time column is named")
        roles["time_unit"] = finest(unit or "ms" for unit in units)
    return roles


def ratio_of_units(unit: TimeUnit | None, common: Roles, columns: Collection[str]) -> int:
    """How many of the common unit a unit is (None: milliseconds); 1 if no unit was given at all.

    Raises `InputError` if times in a struct would have to be converted, given the ``columns`` of the input.
    """
    ratio = int(MICROSECONDS[unit or "ms"] / MICROSECONDS[common.get("time_unit", unit or "ms")])
    if ratio != 1 and common["time"] not in columns:
        raise InputError(
            f"the times of the inputs have different units, and those in the field '{common['time']}' are not "
            "converted; make a column of them first"
        )
    return ratio


def in_common_unit(table: pa.Table, unit: TimeUnit | None, common: Roles, name: str) -> pa.Table:
    """The table of an input with its times, which count ``unit``, in the unit of all inputs.

    Raises `InputError` for times that leave 64 bits.
    """
    ratio = ratio_of_units(unit, common, table.column_names)
    if ratio == 1 or not kind_of(table.schema.field(common["time"]).type).numeric:
        return table
    index = table.schema.get_field_index(common["time"])
    column = table.column(index)
    whole = pa.types.is_integer(column.type)
    import pyarrow.compute as pc

    try:
        values = pc.multiply_checked(column.cast(pa.int64() if whole else pa.float64()), ratio)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"a time in '{common['time']}' of the input '{name}' does not fit 64 bits in the unit "
            f"'{common['time_unit']}', which the times of all inputs are brought to"
        ) from error
    return table.set_column(index, common["time"], values)


def _common(role: str, given: str | None, own: Mapping[str, str | None]) -> str | None:
    named = {column for column in own.values() if column is not None}
    if given is not None or not named:
        return given
    for name, column in own.items():
        if column is None:
            other = next(n for n, c in own.items() if c is not None)
            raise InputError(f"the input '{name}' has no {role} column, but the input '{other}' has one")
    return next(iter(named)) if len(named) == 1 else role


def refuse_partly_typed(inputs: Iterable[tuple[str, Collection[str]]], type: str) -> None:
    """Raise `InputError` if some inputs have a type column and others not, given the columns of each.

    Inputs without any column, such as empty files, have no events.
    """
    known = {name: type in columns for name, columns in inputs if columns}
    if len(set(known.values())) > 1:
        typed, untyped = (next(name for name, has in known.items() if has is wanted) for wanted in (True, False))
        raise InputError(
            f"the type column '{type}' is not in the input '{untyped}', but in '{typed}': name the column that holds "
            "the types, or give all events of the input one type with constant_type=… (--constant-type)"
        )


def column_names(columns: Sequence[str], of: Input[Any], common: Roles, name: str | None = None) -> tuple[str, ...]:
    """The names of an input's columns among all inputs, and last the column of the constant type, if it has one.

    ``name`` is the name of the input in errors. Raises `InputError` for columns that do not exist, or that would have
    the same name.
    """
    where = "the input" if name is None else f"the input '{name}'"
    new = {column: column for column in columns}
    for old, wanted in of.rename.items():
        if old not in new:
            raise InputError(
                f"the column '{old}', which is to be renamed, is not in {where}{did_you_mean(old, columns)}"
            )
        new[old] = wanted
    own_names = {"time": of.time, "sequence": of.sequence} | ({"type": of.type} if of.constant_type is None else {})
    for role, called in ((role, str(called)) for role, called in common.items() if role in own_names):
        own = own_names[role] or called
        if own not in new and role == "type" and of.type is None and called in ("type", UNTYPED):
            continue  # the events have no types
        if own == called and own not in new and own.partition(".")[0] in new:
            continue  # a field of a struct, which the schema knows
        if own not in new:
            raise InputError(f"the {role} column '{own}' is not in {where}{did_you_mean(own, columns)}")
        if new[own] not in (own, called):
            raise InputError(f"'{own}' of {where} has a role and is called '{called}'; it cannot be '{new[own]}' too")
        new[own] = called
    names = [new[column] for column in columns]
    if of.constant_type is not None:
        names.append(common["type"])
    for double in names:
        if names.count(double) > 1:
            sources = [f"its column '{old}'" for old in columns if new[old] == double]
            if of.constant_type is not None and double == common["type"]:
                sources.append("the type that is given")
            said = " and ".join(dict.fromkeys(sources))
            raise InputError(f"{where} would have more than one column '{double}': {said}; rename an attribute")
    return tuple(names)


def common_schema(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of all inputs, in the order in which they appear, with types that hold the values of each.

    Raises `InputError`, with the names of both inputs, for a column whose types do not fit together.
    """
    found: dict[str, tuple[pa.DataType, str]] = {}
    for name, schema in schemas:
        for column in schema:
            if column.name not in found:
                found[column.name] = (column.type, name)
                continue
            before, first = found[column.name]
            wider = _wider(before, column.type)
            if wider is None:
                raise InputError(
                    f"the inputs do not fit together: the column '{column.name}' is {before} in '{first}' "
                    f"and {column.type} in '{name}'; convert or rename it in one of them"
                )
            # Whoever widened the type to what it is now is the one to name.
            found[column.name] = (wider, first if wider == before else name)
    return pa.schema([(name, kind) for name, (kind, _) in found.items()])


def fitted_table(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The table with the columns of a schema, null where it has none; ``name`` is what errors call the input.

    Raises `InputError` for values that do not fit the wider type.
    """
    columns = []
    for column in schema:
        if column.name not in table.column_names:
            columns.append(pa.nulls(len(table), column.type))
            continue
        try:
            columns.append(table.column(column.name).cast(column.type))
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"the column '{column.name}' of the input '{name}' does not fit {column.type}: {reason}"
            ) from error
    return pa.table(columns, schema=schema)


def free_name(wish: str, taken: Iterable[str]) -> str:
    """The name wished for, with underscores in front as long as it is taken."""
    names = set(taken)
    while wish in names:
        wish = f"_{wish}"
    return wish


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The smallest type for the values of both, None if there is none; integers and fractions become doubles."""
    a, b = (t.value_type if a != b and pa.types.is_dictionary(t) else t for t in (a, b))
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return None if (a.tz is None) != (b.tz is None) else pa.timestamp(finest((a.unit, b.unit)), tz=a.tz)
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(of(a) and of(b) for of in (*numbers, _is_text)):
        pair = [pa.schema([("", t)]) for t in (a, b)]
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    return pa.float64() if all(any(of(t) for of in numbers) for t in (a, b)) else None


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))
