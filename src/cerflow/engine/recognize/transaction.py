"""A push happens wholly or not at all: what it changes is noted before, and set back if it fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from cerflow.base.array_types import Bytes
from cerflow.engine.state.memory import Memory


class Changing(Protocol):
    """An object of which pushes change some attributes: they replace the values, and never change these in place."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The names of the attributes."""


class Transaction:
    """A context manager that sets objects back if its block fails."""

    def __init__(self, parts: Iterable[Changing]) -> None:
        self._before = [(part, name, getattr(part, name)) for part in parts for name in part.changes]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.set_back()

    def set_back(self) -> None:
        """Set the objects back."""
        for part, name, value in self._before:
            setattr(part, name, value)


class StateBefore:
    """A former state of a memory, which kernels change in place: call `leave` before, which keeps it if necessary."""

    def __init__(self, memory: Memory, *, always: bool = False) -> None:
        self._memory = memory
        self._state = memory.state
        self._saved: Bytes | None = None
        self._always = always
        #: The bytes to keep.
        self.bytes = memory.changing
        #: Whether the state has changed and was not kept.
        self.lost = False

    def leave(self, *, keep: bool, briefly: bool = True) -> None:
        """Let the state change; unless it is to be kept, here or always, it is lost. See `Memory.saved`."""
        if keep or self._always:
            self._saved = self._memory.saved(briefly=briefly)
        self.lost = self._saved is None

    def set_back(self) -> None:
        """Set the memory back, unless the state is lost."""
        self._memory.set_back(self._state, self._saved)
