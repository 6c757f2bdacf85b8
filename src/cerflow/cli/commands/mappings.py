"""Assigns roles and names to the columns of inputs: ``--type-column``, ``--constant-type``, ``--rename``, …"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import pyarrow as pa

from cerflow.cli.arguments import usage, values_of
from cerflow.cli.options import ColumnOptions, Given
from cerflow.files.column_types import type_named
from cerflow.files.sources import Source, source_name
from cerflow.language.parser import duration_in_microseconds
from cerflow.stream_inputs import Input, Roles, common_roles
from cerflow.values.units import TimeUnit


def mapped(sources: Sequence[Source], options: ColumnOptions) -> tuple[tuple[Input[Source], ...], Roles]:
    """The inputs with their options, and the names that columns with a role have in all inputs together.

    Raises typer's BadParameter for options that name no input or contradict each other, and InputError if only some
    of the inputs have a role.
    """
    names = list(dict.fromkeys(source_name(source) for source in sources))
    types, own_types = _assigned("--type-column", options.type, names)
    times, own_times = _assigned("--time-column", options.time, names)
    units, own_units = _units(options.time_unit, names)
    sequences, own_sequences = _assigned("--sequence-column", options.sequence, names)
    constant, own_constants = _assigned("--constant-type", options.constant_type, names)
    renamed = _renamed(options.rename, names)
    typed = _typed(options.column_types, names)
    for name in own_types.keys() & own_constants.keys():
        usage(f"the input '{name}' has a type column already", "--constant-type")
    if types is not None and constant is not None:
        usage("all inputs have a type column already", "--constant-type")
    inputs = []
    for source in sources:
        name = source_name(source)
        one_type = None if name in own_types else constant
        inputs.append(
            Input(
                replace(source, column_types=typed[name]),
                type=own_types.get(name),
                time=own_times.get(name),
                time_unit=own_units.get(name, units),
                sequence=own_sequences.get(name),
                constant_type=own_constants.get(name, one_type),
                rename=renamed[name],
            )
        )
    by_name = {source_name(one.events): one for one in inputs}
    return tuple(inputs), common_roles(by_name, type=types, time=times, sequence=sequences)


def _units(values: Given, names: Sequence[str]) -> tuple[TimeUnit | None, dict[str, TimeUnit]]:
    """The unit of time for all inputs, and the units for single inputs."""
    known: dict[str, TimeUnit] = {unit: unit for unit in get_args(TimeUnit)}
    common, own = _assigned("--time-unit", values, names)
    for given in (common, *own.values()):
        if given is not None and given not in known:
            usage(f"'{given}' is not one of {', '.join(known)}", "--time-unit")
    return None if common is None else known[common], {name: known[unit] for name, unit in own.items()}


def checked_timeout(options: ColumnOptions) -> str | None:
    """The pause after which a key starts again; raises typer's BadParameter if it is not a duration."""
    with values_of("--key-timeout"):
        duration_in_microseconds(options.key_timeout)
    return options.key_timeout


def _assigned(option: str, values: Given, names: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The value for all inputs, and the values for single inputs."""
    common: str | None = None
    own: dict[str, str] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not (value if equals else name):
            usage(f"'{text}' is not of the form [NAME=]VALUE", option)
        if not equals:
            if common not in (None, text):
                usage(f"given twice for all inputs: '{common}' and '{text}'", option)
            common = text
            continue
        _known(option, name, names)
        if own.get(name, value) != value:
            usage(f"given twice for the input '{name}': '{own[name]}' and '{value}'", option)
        own[name] = value
    return common, own


def _renamed(values: Given, names: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for name, new, old in _pairs("--rename", "NEW=OLD", values, names):
        if found[name].get(old, new) != new:
            usage(f"the column '{old}' gets two names: '{found[name][old]}' and '{new}'", "--rename")
        found[name][old] = new
    return found


def _typed(values: Given, names: Sequence[str]) -> dict[str, dict[str, pa.DataType]]:
    found: dict[str, dict[str, pa.DataType]] = {name: {} for name in names}
    for name, column, said in _pairs("--column-type", "COLUMN=TYPE", values, names):
        with values_of("--column-type"):
            kind = type_named(said)
        if found[name].get(column, kind) != kind:
            usage(f"the column '{column}' gets two types", "--column-type")
        found[name][column] = kind
    return found


def _pairs(option: str, form: str, values: Given, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The values ``[NAME=]A=B`` of an option as (name, A, B), for each input that they are about."""
    for text in values or ():
        *of, first, second = text.split("=") if text.count("=") in (1, 2) else ("", "", "")
        if not first or not second:
            usage(f"'{text}' is not of the form [NAME=]{form}", option)
        for name in of:
            _known(option, name, names)
        for name in of or names:
            yield name, first, second


def _known(option: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        usage(f"there is no input '{name}'; the inputs are {', '.join(names)}", option)
