"""Partial matches that share their events: a set of them is a graph, and an event is added to all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

#: Pairs of label and position.
Pairs = frozenset[tuple[str, int]]


class PartialMatches:
    """A set of complex events: those of ``before``, each with the event at ``position`` under ``labels``."""

    __slots__ = ("__dict__", "before", "labels", "position")

    def __init__(self, before: Sequence[PartialMatches], labels: frozenset[str] = frozenset(), position: int = -1):
        self.before = tuple(before)
        self.labels = labels
        self.position = position
        # Counted when made, so that no count goes deep.
        _ = self.count

    @cached_property
    def count(self) -> int:
        """Their number: that of complex events, if the automaton has one run for each."""
        return sum(part.count for part in self.before) if self.before else 1

    def __iter__(self) -> Iterator[Pairs]:
        """The complex events one after the other, with repetitions if there are several runs for one."""
        stack: list[tuple[PartialMatches, Pairs]] = [(self, frozenset())]
        while stack:
            node, pairs = stack.pop()
            pairs |= {(label, node.position) for label in node.labels}
            if not node.before:
                yield pairs
            stack.extend((part, pairs) for part in reversed(node.before))


#: The one complex event without events.
NOTHING = PartialMatches(())
