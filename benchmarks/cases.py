"""What is measured: a query, the stream it runs on, and how the same is said to another engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = ["Case", "Language", "Mode", "Peer", "Point", "Question", "Scale", "Stream"]

#: Matches are counted on the shared graph, by one thread or two, or all written to Arrow batches, with numbers of
#: events beside a dictionary of these or with events as structs; or nobody asks for them, only at which events there
#: are any (SELECT NONE); or for each of these events the number of matches and a sum over them are computed, the match
#: with the least sum is found, or a random one. "apart" writes all matches, and tells apart what the time was spent on
#: and how much was remembered before the last event.
Mode = Literal["count", "threads", "write", "structs", "detect", "aggregate", "first", "sample", "apart"]
Language = Literal["ceql", "sremo"]


@dataclass(frozen=True)
class Stream:
    """A stream by its description, which every process can make events of (see `benchmarks.streams`)."""

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> dict[str, Any]:
        """The stream as plain data."""
        return {"kind": self.kind, **self.arguments}


@dataclass(frozen=True)
class Peer:
    """Another engine that can answer the same question, and the question in its words."""

    engine: str
    request: Mapping[str, Any]
    #: Why its number of matches may rightly be another; None if it must be equal.
    differs: str | None = None
    #: Cases of one family come from the easiest to the hardest: over the limit at one, it is not asked the next.
    family: str | None = None
    #: How it reads its matches.
    mode: Mode = "write"


class Point(NamedTuple):
    """The place of a case in a chart: what grows along the axis, how large it is, and the line that it belongs to."""

    axis: str
    value: float
    line: str


class Question(NamedTuple):
    """A pattern, and what a match may span.

    Cases of the same question must have as many matches; of cases on one stream that have only the pattern or only the
    span in common, one tells nothing if it has as many matches as the other.
    """

    pattern: str
    span: str


@dataclass(frozen=True)
class Case:
    """One question: a query in cerflow's language on a stream.

    ``columns`` are those the query reads, for the floor; ``tags`` are what the bars choose their rows by.
    """

    suite: str
    name: str
    query: str
    stream: Stream
    columns: tuple[str, ...]
    modes: tuple[Mode, ...] = ("count", "write")
    peers: tuple[Peer, ...] = ()
    tags: frozenset[str] = frozenset()
    #: Where the case stands in a chart of what grows, if anything does.
    point: Point | None = None
    #: How the text of the stream's events is stored: plainly, or encoded as Arrow dictionaries.
    layouts: tuple[str, ...] = ("text", "encoded")
    #: The language of the query: ``ceql`` or ``sremo``.
    language: Language = "ceql"
    #: The most runs that are worth their time.
    runs: int = 100
    #: What it asks, if the number of its matches is to be compared with those of other cases, and must not be 0.
    question: Question | None = None
    #: Why it must have no match; None if it must have some.
    empty: str | None = None

    def peer(self, engine: str) -> Peer | None:
        """The question in the words of an engine, if it is asked."""
        return next((peer for peer in self.peers if peer.engine == engine), None)

    def request(self, engine: str) -> Mapping[str, Any]:
        """What the engine, one of the case's peers, is asked."""
        peer = self.peer(engine)
        assert peer is not None
        return peer.request


@dataclass(frozen=True)
class Scale:
    """How large a whole run is: the stream of stock ticks, sizes of synthetic streams, and which cases are left out."""

    stocks: Stream
    #: Events of synthetic streams where their number is not what varies.
    events: int = 1_000_000
    #: The longest stream.
    most: int = 100_000_000
    quick: bool = False
