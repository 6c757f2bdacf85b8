"""Why some events are not a match: the parts of the query without which they would be one.

Each part of the query that can refuse events is left out in turn, and the query is asked again. So an answer is checked
by the meaning of the query and not by rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral

import pyarrow as pa

from cerflow.api.query import Query
from cerflow.base import limits
from cerflow.base.errors import ArgumentError, QueryError, Span, UnsupportedQueryError, dotted, expect
from cerflow.base.events import UNNAMED, Event, Stream, Value
from cerflow.language import formula as f
from cerflow.language.condition import Attribute, LabelReference
from cerflow.language.node import walk
from cerflow.language.select import Select
from cerflow.logic.analysis.scopes import labels_of
from cerflow.look.studying.fitting import Fit, Wanted, detection, reported
from cerflow.look.studying.relaxing import Constraint, constraints, relaxed
from cerflow.look.studying.samples import StudiedEvents, key_of_event, substream_at
from cerflow.look.studying.wording import shown_pairs, shown_value, time_of

#: Positions of events, or pairs of label and position.
Chosen = Iterable[int | tuple[str, int]]
_CHOSEN = "choose events by positions, such as [0, 3], or by pairs such as ('x', 0)"

#: Parts are tried in this order when several refuse together; the first to be kept are the last to be blamed.
_KEPT_FIRST = ("type", "both", "start", "repetition", "contiguity", "partition", "exclusion", "preference", "limit")


@dataclass(frozen=True)
class RefusingPart:
    """A part of a query that refuses events: how it is written, where in the text, and why it refuses, in words."""

    text: str
    span: Span | None
    words: str

    def __str__(self) -> str:
        return f"{self.text}: {self.words}"


@dataclass(frozen=True)
class WhyNot:
    """The answer to `Query.why_not`.

    Events that are a match are detected at event ``detected_at``, or by the clock at the ``detected_time``; otherwise
    both are None. Each of the ``reasons`` is a set of parts of the query: without them, but not without fewer of them,
    the events would be a match. Events that do not have the shape of a match have a ``shape`` instead, which says so.
    """

    detected_at: int | None
    reasons: tuple[tuple[RefusingPart, ...], ...] = ()
    shape: str | None = None
    detected_time: Value = None

    def __bool__(self) -> bool:
        """Whether the events are not a match."""
        return self.detected_at is None and self.detected_time is None

    def __str__(self) -> str:
        if self.detected_at is not None:
            return f"the events are a match, detected at event {self.detected_at}"
        if self.detected_time is not None:
            return f"the events are a match, detected at {shown_value(self.detected_time)} as time passes"
        if self.shape is not None:
            return self.shape
        return "\nor ".join("\n  and ".join(map(str, parts)) for parts in self.reasons)


@dataclass(frozen=True)
class _Variant:
    """A query ``without`` some of its parts: then it has the wanted events as the match ``found``."""

    select: Select
    left_out: Sequence[Constraint]
    without: Select
    sample: StudiedEvents
    wanted: Wanted
    found: Fit

    @property
    def reason(self) -> tuple[RefusingPart, ...]:
        """The parts that are left out, with the words why each refuses the events."""
        return tuple(RefusingPart(dotted(c.text), c.node.span, _words(c, self)) for c in self.left_out)


def _tried(select: Select, left_out: Sequence[Constraint], sample: StudiedEvents, wanted: Wanted) -> _Variant | None:
    """The query without some parts, if it then has the wanted events as a match."""
    without = relaxed(select, left_out)
    try:
        found = detection(without, sample, wanted)
    except (QueryError, UnsupportedQueryError):
        return None
    return None if found is None else _Variant(select, left_out, without, sample, wanted, found)


def why_not(select: Select, sample: StudiedEvents, chosen: Chosen) -> WhyNot:
    """See `Query.why_not`."""
    wanted = _wanted(chosen, sample)
    found = detection(select, sample, wanted)
    if found is not None:
        return WhyNot(found.detected_at, detected_time=found.detected_time)
    parts = sorted(
        constraints(select), key=lambda c: _KEPT_FIRST.index(c.kind) if c.kind in _KEPT_FIRST else len(_KEPT_FIRST)
    )
    if len(parts) > limits.WHY_NOT_PARTS:
        raise UnsupportedQueryError(
            f"the query has {len(parts)} parts that can refuse events; {limits.WHY_NOT_PARTS} are examined"
        )
    single = [one for part in parts if (one := _tried(select, [part], sample, wanted)) is not None]
    if single:
        return WhyNot(None, tuple(one.reason for one in single))
    least = _tried(select, parts, sample, wanted)
    if least is None:
        anyhow = dict.fromkeys(wanted, frozenset[str]())
        return WhyNot(None, shape=_shape(wanted, _tried(select, parts, sample, anyhow)))
    for part in parts:
        fewer = [other for other in least.left_out if other is not part]
        least = _tried(select, fewer, sample, wanted) or least
    return WhyNot(None, (least.reason,))


def _wanted(chosen: Chosen, sample: StudiedEvents) -> Wanted:
    wanted: dict[int, frozenset[str]] = {}
    expect(chosen, Iterable, _CHOSEN)
    for one in chosen:
        label, position = one if isinstance(one, tuple) and len(one) == 2 else (None, one)
        last = sample.first + len(sample.events) - 1
        expect(position, Integral, _CHOSEN)
        if not sample.first <= position <= last:
            raise ArgumentError(f"there is no event {position}: the positions are {sample.first} to {last}")
        wanted[position] = wanted.get(position, frozenset()) | ({label} if label is not None else set())
    if not wanted:
        raise ArgumentError(_CHOSEN)
    return wanted


def _shape(wanted: Wanted, anyhow: _Variant | None) -> str:
    """Why the events are no match, whatever is left out; they are one with other labels if that is given."""
    if anyhow is not None:
        match = shown_pairs(anyhow.found.complex_event)
        return f"the events never have these labels together; with these events a match is {match}"
    events = "one event" if len(wanted) == 1 else f"these {len(wanted)} events"
    return (
        f"no match consists of {events} alone, whatever the types and values: the pattern reports more or fewer events"
    )


# -- words ---------------------------------------------------------------------------------------------------------

_PLAIN = {
    "repetition": "the part is not repeated that many times",
    "start": "the events do not begin with the first event of the stream",
    "both": "this side does not match the same events",
    "consumption": "an earlier match has consumed the partial match",
}


def _words(c: Constraint, variant: _Variant) -> str:
    """Why a part that is left out refuses the events."""
    select, sample, positions = variant.select, variant.sample, sorted(variant.wanted)
    match c.kind:
        case "condition":
            return _condition(c, sample, variant.found)
        case "type":
            return _type(c, sample, variant.found)
        case "window":
            return _window(c, sample, positions)
        case "exclusion":
            return _exclusion(c, variant)
        case "preference" | "limit":
            return _rivals(select, sample, variant.found)
        case "contiguity":
            part = substream_at(variant.without, sample.stretch(positions[0], positions[-1] + 1), positions)
            assert part is not None
            gaps = [f"event {p}" for p in part.places if p not in positions]
            lies = "lies" if len(gaps) == 1 else "lie"
            return f"{_few(gaps)} {lies} in between" if gaps else "the events do not follow one another directly"
        case "partition":
            keys = [
                f"event {p} has {', '.join(map(shown_value, key_of_event(select, sample.at(p))))}" for p in positions
            ]
            return f"the events have different keys: {_few(keys)}"
    return _PLAIN[c.kind]


def _condition(c: Constraint, sample: StudiedEvents, found: Fit) -> str:
    read: dict[str, None] = {}
    for node in walk(c.node):
        label = getattr(node, "label", None)
        if not isinstance(label, str):
            continue
        bare = [n.name for n in walk(node) if isinstance(n, Attribute) and n.label is None]
        names = [node.name] if isinstance(node, Attribute) else bare
        for p in sorted(p for a, p in found.complex_event if a == label):
            if isinstance(node, LabelReference):
                read[f"{label} is event {p}"] = None
            for name in names:
                read[f"{label}.{name} = {shown_value(sample.at(p).attribute(name))} at event {p}"] = None
    return dotted(f"it does not hold; {_few(list(read))}") if read else "it does not hold"


def _type(c: Constraint, sample: StudiedEvents, found: Fit) -> str:
    if isinstance(c.node, f.EventKind):
        return "an event of this kind is not among them, or not at this point"
    if not isinstance(c.node, f.EventType):
        return "an event that it excludes is among them"
    wrong = sorted(p for a, p in found.complex_event if a == c.node.name and sample.at(p).type != c.node.name)
    shown = [f"event {p} is of type {sample.at(p).type}" for p in wrong]
    return _few(shown) if shown else "an event of this type is not among them, or not at this point"


def _window(c: Constraint, sample: StudiedEvents, positions: list[int]) -> str:
    first, last = (sample.at(p) for p in (positions[0], positions[-1]))
    if isinstance(c.node, f.CountWindow):
        return f"the events are too far apart: {first.position} to {last.position}"
    if isinstance(c.node, f.AttributeWindow):
        name = c.node.attribute
        values = [f"{dotted(name)} = {shown_value(e.attribute(name))} at event {e.position}" for e in (first, last)]
        return f"the events are too far apart: {', '.join(values)}"
    at, until = (shown_value(event.moment or event.time) for event in (first, last))
    return f"the events are too far apart: event {first.position} is at {at}, event {last.position} at {until}"


def _exclusion(c: Constraint, variant: _Variant) -> str:
    assert isinstance(c.node, f.Exclusion)
    if isinstance(c.node, f.NotFollowedBy):
        return _followed(c.node, variant)
    sample, positions = variant.sample, sorted(p for _, p in variant.found.complex_event)
    begin = sample.first if isinstance(c.node, f.Unless) else positions[0]
    part = substream_at(variant.without, sample.stretch(begin, positions[-1] + 1), positions)
    assert part is not None
    first = next(_matches(c.node.right, sample, [*part.places]), None)
    if first is None:
        return "what must not happen has happened"
    return f"what must not happen has happened: {_events(sample, first)}"


def _followed(node: f.NotFollowedBy, variant: _Variant) -> str:
    """Says which event came before a deadline, or that it has not passed yet."""
    sample, pairs, labels = variant.sample, variant.found.complex_event, labels_of(node.left).assigned
    own = {p for a, p in pairs if a in labels} or {p for _, p in pairs}
    last = max(own)
    for stretch in sample.stretches(min(own), last):
        part = substream_at(variant.without, stretch, own)
        assert part is not None
        behind = part.events[part.places[last] + 1 :]
        deadline, before, passed = _deadline(node.window, stretch, part.events[part.places[last]], behind)
        if passed or stretch.end == sample.end:
            break
    following = [event.position for event in behind[:before]]
    for positions in _matches(node.right, sample, following):
        return f"before the deadline ({deadline}) came {_events(sample, positions)}"
    # Conditions of the right side may read the left side, for which the events of the match are enough.
    for positions in _matches(f.Sequence(node.left, node.right), sample, [*sorted(own), *following]):
        if own <= positions and min(positions - own, default=last) > last:
            return f"before the deadline ({deadline}) came {_events(sample, positions - own)}"
    if not passed:
        return f"the deadline ({deadline}) has not passed yet, as far as the events show"
    return f"what must not follow came before the deadline ({deadline})"


def _deadline(window: f.Window, sample: StudiedEvents, begun: Event, behind: Stream) -> tuple[str, int, bool]:
    """The deadline after an event, in words; how many events come before it; and whether it has passed."""
    match window:
        case f.CountWindow():
            words = f"{window.events} event{'s' if window.events > 1 else ''} after event {begun.position}"
            return words, window.events, len(behind) >= window.events
        case f.AttributeWindow():
            base = begun.attribute(window.attribute)
            values = [event.attribute(window.attribute) for event in behind]
            assert isinstance(base, int | float)  # an event without the attribute begins no deadline
            reached = (k for k, v in enumerate(values) if isinstance(v, int | float) and v - base >= window.size)
            before = next(reached, len(behind))
            words = f"{window.attribute} = {base + window.size}, {window.size} beyond event {begun.position}"
            return words, before, before < len(behind)
    assert isinstance(window, f.DurationWindow)
    time = begun.time + sample.events.ticks(window.microseconds)
    last = max((event.time for event in sample.events), default=time)
    passed = last >= time or (sample.clock is not None and sample.clock >= time)
    return shown_value(time_of(time, sample.events)), sum(event.time < time for event in behind), passed


def _matches(formula: f.Formula, sample: StudiedEvents, positions: list[int]) -> Iterator[set[int]]:
    """The matches of a formula in some events, as positions; none if it reads labels of the formula around it."""
    rows = sample.table.take(pa.array([p - sample.first for p in positions], pa.int64()))
    try:
        # Not match(), which would warn of types that these rows lack.
        matches = Query(Select(formula)).recognizer(rows.schema, **sample.roles).push(rows)
        for match in islice(matches, limits.LISTED_RIVALS):
            yield {positions[event["position"]] for event in match["events"]}
    except (QueryError, UnsupportedQueryError):
        return


def _events(sample: StudiedEvents, positions: Iterable[int]) -> str:
    shown = [(p, sample.at(p).type) for p in sorted(positions)]
    return _few([f"event {p}" if kind == UNNAMED else f"event {p} of type {kind}" for p, kind in shown])


def _rivals(select: Select, sample: StudiedEvents, found: Fit) -> str:
    others = list(islice(reported(select, sample, found), limits.LISTED_RIVALS))
    if not others:
        return "another match is preferred"
    chosen = _few(list(map(shown_pairs, others)))
    where = "the clock" if found.detected_at is None else f"event {found.detected_at}"
    return f"{where} completes other matches, and these are chosen: {chosen}"


def _few(shown: list[str]) -> str:
    more = len(shown) - limits.EXPLAINED_VALUES
    return ", ".join(shown[: limits.EXPLAINED_VALUES]) + (f" and {more} more" if more > 0 else "")
