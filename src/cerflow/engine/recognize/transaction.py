"""A push happens wholly or not at all: what it changes is noted before, and set back if it fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from cerflow.base.array_types import Bytes
from cerflow.engine.declared_arrays import block_of

if TYPE_CHECKING:
    from cerflow.engine.recognize.machine import Machine


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
    """A former state of the memory of a machine, the ``owner``, which kernels change in place.

    Call `leave` before, which keeps it if necessary.
    """

    def __init__(self, owner: Machine) -> None:
        # The owner holds this, so this does not hold the owner.
        self._state = owner.memory.state if owner.remembers else None
        self._saved: Bytes | None = None
        #: Whether to keep it anyway.
        self.always = False
        #: The bytes to keep.
        self.bytes = 0 if self._state is None else block_of(self._state.counters).nbytes
        #: Whether the state has changed and was not kept.
        self.lost = False

    def leave(self, owner: Machine, *, keep: bool) -> None:
        """Let the state change; unless it is to be kept, here or always, it is lost."""
        if self._state is None:
            return
        if keep or self.always:
            self._saved = owner.memory.saved()
        self.lost = self._saved is None

    def set_back(self, owner: Machine) -> None:
        """Set the memory back, unless the state is lost."""
        if self._state is None:
            owner.forget_memory()
            return
        if self._saved is not None:
            block_of(self._state.counters)[:] = self._saved
        owner.memory.state = self._state
