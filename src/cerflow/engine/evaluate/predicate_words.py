"""Arguments of predicates as 64-bit words, as in registers and event columns, and as values for users."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from cerflow.base.decimals import text_decimal
from cerflow.base.events import moment_at
from cerflow.base.schema import ValueKind
from cerflow.base.units import PER_SECOND
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.layout import NULL


@dataclass(frozen=True)
class Argument:
    """The kinds of the words of an argument: one, or those of the attributes ``names`` of a whole event."""

    kinds: tuple[ValueKind, ...]
    names: tuple[str, ...] | None = None

    @property
    def kind(self) -> ValueKind | None:
        """The kind of a value, None for a whole event."""
        return self.kinds[0] if self.names is None else None


class Words:
    """The decoding of the words of arguments."""

    def __init__(self, arguments: Sequence[Argument], strings: Strings, unit: str) -> None:
        kinds = [kind for argument in arguments for kind in argument.kinds]
        self.count = len(kinds)
        self._arguments = arguments
        # The table of strings may be replaced by another.
        self._readers = [reader(kind, lambda code: strings.texts[code], unit) for kind in kinds]
        self._format = struct.Struct("".join("d" if kind is ValueKind.FLOAT else "q" for kind in kinds))

    def read(self, words: bytes) -> list[Any]:
        """The arguments, None for null."""
        values = [read(word) for read, word in zip(self._readers, self._format.unpack(words))]
        given: list[Any] = []
        for argument in self._arguments:
            count = len(argument.kinds)
            some, values = values[:count], values[count:]
            given.append(some[0] if argument.names is None else MappingProxyType(dict(zip(argument.names, some))))
        return given


def reader(kind: ValueKind, text: Callable[[int], str], unit: str) -> Callable[[Any], Any]:
    """A function from a word of a kind (floats as such) to the value for users."""

    if kind is ValueKind.FLOAT:
        # Registers hold only one zero.
        return lambda word: None if word != word else word + 0.0
    known: dict[ValueKind, Callable[[int], Any]] = {
        ValueKind.BOOLEAN: bool,
        ValueKind.STRING: text,
        ValueKind.DECIMAL: lambda word: text_decimal(text(word)),
        ValueKind.TIMESTAMP: lambda word: moment_at(word * 10**6 // PER_SECOND[unit]),
        ValueKind.DURATION: lambda word: timedelta(microseconds=word),
    }
    read = known.get(kind, int)
    return lambda word: None if word == NULL else read(word)


def only_compiled(name: str) -> str:
    """The message for a predicate that fails as compiled code and works as plain Python."""
    return f"predicate '{name}' failed as compiled by Numba, but not as plain Python (register it with compile=False)"
