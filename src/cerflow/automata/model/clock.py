"""Deadlines in time: what a transducer reads besides events (spec §10).

Time passes between events, also where no event of a substream shows it. So a run may read two things that are not
events: `TICK`, once a deadline has passed, and `PAUSE`, which stands for an event of another substream. Ticks come
before the event that shows them. A match that ends with a tick is detected by what is read next, an event or a pause.
So all matches of one moment are detected together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.language.condition import Not
from cerflow.language.formula import DurationWindow, Window
from cerflow.language.node import walk
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.conditions.guards import InWindow, Measure, TypeTest

#: The tests that only a tick or only a pause satisfies. No event has such a type.
TICK = TypeTest("\0a deadline has passed")
PAUSE = TypeTest("\0no event")


def reads_tick(t: Transition) -> bool:
    """Whether a transition reads ticks only."""
    return TICK in conjuncts(t.test)


def may_read_events(t: Transition) -> bool:
    """Whether a transition may read an event, for one whose test does not leave that open (see `parted`)."""
    return {TICK, PAUSE}.isdisjoint(conjuncts(t.test))


def never_reads_tick(t: Transition) -> bool:
    """Whether it is plain that a transition reads no ticks."""
    parts = conjuncts(t.test)
    return bool(t.labels) or Not(TICK) in parts or any(isinstance(p, TypeTest) and p != TICK for p in parts)


def on_events(t: Transition) -> Transition:
    """The transition, for events only."""
    parts = conjuncts(t.test)
    if any(isinstance(part, TypeTest) for part in parts):
        return t
    return replace(t, test=conjunction([*parts, Not(TICK), Not(PAUSE)]))


def parted(t: Transition) -> Iterator[Transition]:
    """The versions of a transition that read events only, and no events."""
    parts = conjuncts(t.test)
    if PAUSE in parts or TICK in parts:
        yield t
        return
    event = on_events(t)
    yield event
    for thing in (PAUSE, TICK):
        if event.test != t.test and Not(thing) not in parts:
            yield replace(t, test=conjunction([thing, *(p for p in parts if p not in (Not(PAUSE), Not(TICK)))]))


def with_patience(operand: Fragment) -> Fragment:
    """The fragment, in which runs stay over ticks and pauses also where they may not skip any event."""
    going_on = {t.source for t in operand.transitions}
    loops: list[Transition] = []
    for thing in (TICK, PAUSE):
        able = {
            t.source
            for t in operand.transitions
            if t.skips
            or thing in (parts := conjuncts(t.test))
            or (t.stays and thing == PAUSE and Not(TICK) in parts and Not(PAUSE) not in parts)
        }
        loops += [Transition(q, q, thing) for q in sorted(going_on - able)]
    return operand.with_transitions([*operand.transitions, *loops])


def has_ticks(transducer: Transducer) -> bool:
    """Whether a transducer reads ticks."""
    return any(reads_tick(t) for t in transducer.transitions)


def outlasting_states(transducer: Transducer) -> set[int]:
    """The states in which a run may stay as it is, whatever ticks and pauses come."""
    able: list[set[int]] = []
    for thing in (TICK, PAUSE):
        loops = [(t.source, conjuncts(t.test)) for t in transducer.transitions if t.stays]
        free = [(q, parts) for q, parts in loops if Not(thing) not in parts]
        able.append({q for q, parts in free if all(p == thing for p in parts if isinstance(p, TypeTest))})
    return able[0] & able[1]


def windows_before_ticks(transducer: Transducer) -> list[Window]:
    """The windows after which a run may wait for a tick."""
    waiting = [t for t in transducer.transitions if reads_tick(t)]
    roots = [root for t in waiting for root in (*t.atoms, *(asked for write in t.writes for asked in write.where))]
    return list(dict.fromkeys(n.window for root in roots for n in walk(root) if isinstance(n, InWindow)))


def deadlines_of(transducer: Transducer) -> tuple[DurationWindow, ...]:
    """The durations after which a run may wait for a tick."""
    return tuple(w for w in windows_before_ticks(transducer) if isinstance(w, DurationWindow))


def opened_by(t: Transition, deadlines: tuple[Window, ...]) -> frozenset[int]:
    """The deadlines, by number, that may begin to run with the event that a transition reads."""
    measured = {n.window for w in t.writes for part in w.row for n in walk(part) if isinstance(n, Measure)}
    return frozenset(k for k, window in enumerate(deadlines) if window in measured)
