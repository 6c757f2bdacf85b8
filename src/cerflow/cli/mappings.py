"""Which columns of which input mean what: ``--type-column``, ``--constant-type``, ``--rename`` and the like."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import typer

from cerflow.cli.sources import Source, stem
from cerflow.stream_inputs import Input, Roles, common_roles

__all__ = ["ColumnOptions", "label", "mapped", "names_in_files"]


@dataclass(frozen=True)
class ColumnOptions:
    """The options as given, each ``VALUE`` for all inputs or ``NAME=VALUE`` for the input of that name.

    The values of ``rename`` are ``NEW=OLD``.
    """

    type: Sequence[str] = ()
    time: Sequence[str] = ()
    sequence: Sequence[str] = ()
    constant_type: Sequence[str] = ()
    rename: Sequence[str] = ()


def label(source: Source) -> str:
    """The name of the stream that an input is."""
    return source.name or stem(source)


def mapped(sources: Sequence[Source], options: ColumnOptions) -> tuple[tuple[Input[Source], ...], Roles]:
    """The inputs with what the options say of each, and what the columns with a role are called in all of them.

    Raises typer's BadParameter for options that name no input or contradict each other, and InputError if only some
    of the inputs have a role.
    """
    names = list(dict.fromkeys(label(source) for source in sources))
    types, own_types = _assigned("--type-column", options.type, names)
    times, own_times = _assigned("--time-column", options.time, names)
    sequences, own_sequences = _assigned("--sequence-column", options.sequence, names)
    constant, own_constants = _assigned("--constant-type", options.constant_type, names)
    renamed = _renamed(options.rename, names)
    for name in own_types.keys() & own_constants.keys():
        raise _wrong("--constant-type", f"the input '{name}' has a type column already")
    if types is not None and constant is not None:
        raise _wrong("--constant-type", "all inputs have a type column already")
    inputs = []
    for source in sources:
        name = label(source)
        one_type = None if name in own_types else constant
        inputs.append(
            Input(
                source,
                type=own_types.get(name),
                time=own_times.get(name),
                sequence=own_sequences.get(name),
                constant_type=own_constants.get(name, one_type),
                rename=renamed[name],
            )
        )
    roles = common_roles({label(one.events): one for one in inputs}, type=types, time=times, sequence=sequences)
    return tuple(inputs), roles


def names_in_files(one: Input[Source], roles: Roles, names: Collection[str]) -> frozenset[str]:
    """What the files of an input call these columns."""
    found = {old for old, new in one.rename.items() if new in names}
    for role, own in (("type", one.type), ("time", one.time), ("sequence", one.sequence)):
        if own is not None and roles.get(role) in names:
            found.add(own)
    return frozenset(found | {name for name in names if name not in one.rename})


def _assigned(option: str, values: Iterable[str], names: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The value for all inputs, and those for single ones."""
    common: str | None = None
    own: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (value if equals else name):
            raise _wrong(option, f"'{text}' is not of the form [NAME=]VALUE")
        if not equals:
            if common not in (None, text):
                raise _wrong(option, f"given twice for all inputs: '{common}' and '{text}'")
            common = text
            continue
        _known(option, name, names)
        if own.get(name, value) != value:
            raise _wrong(option, f"given twice for the input '{name}': '{own[name]}' and '{value}'")
        own[name] = value
    return common, own


def _renamed(values: Iterable[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for text in values:
        *of, new, old = text.split("=") if text.count("=") in (1, 2) else ("", "", "")
        if not new or not old:
            raise _wrong("--rename", f"'{text}' is not of the form [NAME=]NEW=OLD")
        for name in of:
            _known("--rename", name, names)
        for name in of or names:
            if found[name].get(old, new) != new:
                raise _wrong("--rename", f"the column '{old}' gets two names: '{found[name][old]}' and '{new}'")
            found[name][old] = new
    return found


def _known(option: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise _wrong(option, f"there is no input '{name}'; the inputs are {', '.join(names)}")


def _wrong(option: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=f"'{option}'")
