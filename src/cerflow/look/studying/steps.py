"""The steps of a trace: what events, and deadlines that pass, do to the automaton of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cerflow.base.events import Event, Value
from cerflow.look.studying.wording import shown_value

#: Pairs of label and position.
Pairs = frozenset[tuple[str, int]]
Key = tuple[Value, ...]
Reason = Literal["guard", "window", "consumption"]


@dataclass(frozen=True)
class LivingConfiguration:
    """A configuration: the partial matches in one state with the same register values, in one substream.

    ``number`` stays the same from event to event. ``registers`` are pairs of name and content, as text. ``count`` is
    the number of partial matches, and ``some`` the first few as pairs of label and position; a configuration that
    waits for its first event has the empty one.
    """

    number: int
    key: Key
    state: int
    registers: tuple[tuple[str, str], ...]
    count: int
    some: tuple[Pairs, ...]

    @property
    def waiting(self) -> bool:
        """Whether it has no event yet."""
        return self.count == 1 and self.some == (frozenset(),)


@dataclass(frozen=True)
class Firing:
    """A transition that was taken, by its number in the transducer, from one configuration to another."""

    source: int
    transition: int
    target: int
    labels: frozenset[str]


@dataclass(frozen=True)
class Refusal:
    """A transition that was not taken, and the parts of its guard that are not true, as text with the values read."""

    source: int
    transition: int
    because: tuple[str, ...]


@dataclass(frozen=True)
class Death:
    """Partial matches that were given up: how many of a configuration, why, and in words.

    ``whole`` says that the configuration is gone, and not only those of its partial matches that are too old.
    """

    configuration: LivingConfiguration
    count: int
    reason: Reason
    words: str
    whole: bool


@dataclass(frozen=True, kw_only=True)
class TracedStep:
    """The effect of one step on a substream.

    ``living`` are its configurations after the step. ``detected`` is the number of complex events that the automaton
    detects, ``matches`` the first of them; the strategy of the query, LIMIT and ANY then choose among them.
    """

    key: Key
    fired: tuple[Firing, ...] = ()
    refused: tuple[Refusal, ...] = ()
    died: tuple[Death, ...] = ()
    living: tuple[LivingConfiguration, ...] = ()
    detected: int = 0
    matches: tuple[Pairs, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PassedDeadline(TracedStep):
    """The effect of deadlines in time that have passed, as an event or the clock (``shown_by`` None) shows.

    ``at`` is the time of the deadlines, or for deadlines at values of an ``attribute`` the value that ended them.
    ``begun`` are the events, with a label each, after which something was not to follow (without label if they are
    no part of a match). Matches of several deadlines that one event shows are detected
    with the last.
    """

    at: Value
    begun: tuple[tuple[str | None, int], ...]
    shown_by: Event | None
    attribute: str | None = None

    @property
    def words(self) -> str:
        """The deadlines that have passed, in words."""
        of = ", ".join(f"event {p}" if label is None else f"{label}@{p}" for label, p in self.begun)
        when = f"{self.attribute} = {shown_value(self.at)}" if self.attribute else shown_value(self.at)
        return f"{when}: the deadline{f' of {of}' if of else ''} passes"


@dataclass(frozen=True, kw_only=True)
class TracedEvent(TracedStep):
    """The effect of an event on its substream.

    ``unread`` says why the query does not read the event, else it is None. ``before`` are the deadlines, of all
    substreams, that the event shows to have passed; they come before the event.
    """

    event: Event
    unread: str | None = None
    before: tuple[PassedDeadline, ...] = ()

    @property
    def steps(self) -> tuple[PassedDeadline | TracedEvent, ...]:
        """The deadlines that it shows, and itself."""
        return (*self.before, self)


class PartialMatches:
    """A set of complex events: those of ``before``, each with the event at ``position`` under ``labels``."""

    __slots__ = ("before", "count", "labels", "position")

    def __init__(self, before: Sequence[PartialMatches], labels: frozenset[str] = frozenset(), position: int = -1):
        self.before = tuple(before)
        self.labels = labels
        self.position = position
        #: Their number: that of complex events, if the automaton has one run for each.
        self.count: int = sum(part.count for part in self.before) if self.before else 1

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
