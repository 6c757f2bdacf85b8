"""Conditions that exist only in automata, not in the language; a printer shows them as `Node.notation` says."""

from __future__ import annotations

from cerflow.language.condition import And, Condition
from cerflow.language.formula import EventKind, EventType
from cerflow.language.node import Node, node


@node
class TypeTest(Condition):
    """The current event has this type (and comes from this stream, if one is named)."""

    type: str
    stream: str | None = None

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        if self.type.startswith("\0"):
            # Such a type stands for no event; see `cerflow.automata.model.clock`.
            return (self.type[1:],)
        return (f"type = {self.type}" if self.stream is None else f"type = {self.stream}>{self.type}",)


@node
class StreamTest(Condition):
    """The current event comes from this stream; it holds where streams are not distinguished."""

    stream: str

    template = "stream = {stream}"


@node
class Satisfied(Condition):
    """Two-valued: the condition is true, not false or unknown. ``NOT Satisfied(c)`` is not the same as ``NOT c``."""

    condition: Condition

    template = "satisfied({condition})"


def event_test(event: EventType) -> Condition:
    """The condition on the current event that it is of this type or kind."""
    if not isinstance(event, EventKind):
        return TypeTest(event.name, event.stream)
    return event.condition if event.stream is None else And(StreamTest(event.stream), event.condition)
