"""Finds matches of a single event that another does not follow for a while, on columns instead of by the automaton.

A run of `A NOT FOLLOWED BY B FOR 1 HOUR` waits from its only event on; any B of its key before the deadline ends it. So
the next B of its key decides for each A, and a pass from the end of a batch finds it. The automaton reads only what
crosses the borders of the batch: the events up to the row that shows the last earlier deadline, and those from the
first A on whose deadline lies after the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerflow import limits
from cerflow.automata.model.clock import TICK, reads_tick
from cerflow.conditions.guards import InWindow
from cerflow.engine import layout
from cerflow.engine.evaluate.measures import bounds, measures
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.kernels.table import not_followed
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.graph import CountedMatches, single_events
from cerflow.engine.matches.moments import Moments
from cerflow.engine.recognize.deadlines import sorted_by_row
from cerflow.engine.tables.event_room import some_events
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Not
from cerflow.values.array_types import Ints, Smalls

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Absence:
    """How matches wait: by which ``opening`` moves they begin, and in which state they are ``waiting``."""

    opening: frozenset[int]
    waiting: int


class Absences(NamedTuple):
    """The ``matches`` within a batch, detected at ``moments``.

    The automaton reads the events ``before`` and ``after`` these, by number. Those before have new ``signatures``; the
    first ``rows`` of the input show the earlier deadlines.
    """

    before: Ints
    signatures: Smalls
    rows: int
    matches: CountedMatches
    moments: Moments
    after: Ints


def absence(tables: TransducerTables) -> Absence | str:
    """How matches wait for their deadline, or the reason why only the automaton can tell."""
    moves, transducer, arrays = tables.moves, tables.transducer, tables.arrays
    if len(tables.deadlines) != 1 or tables.reached:
        return "more than one duration, or a deadline at a value of an attribute"
    if tables.schema.forget is not None or transducer.window is not None or len(arrays.checked) or tables.asks:
        return "a window, a predicate, or keys that are forgotten"
    strategy = arrays.options[layout.O_STRATEGY], tables.pick
    if tables.grouped or tables.detecting or arrays.options[layout.O_CONSUME] or strategy != (layout.EVERYTHING,) * 2:
        return "a strategy, CONSUME, or a query without output"
    other = "more than one event before the deadline, or a condition that relates two events"
    opening = [move for move in moves.rows if move.transition.source in transducer.initial]
    waiting = {move.target for move in opening}
    rest = [move for move in moves.rows if move not in opening]
    begins = len(waiting) == len(transducer.initial) == 1 and not any(m.final or m.transition.atoms for m in opening)
    if not begins or len(rest) != 3 or any(frozenset() not in moves.loops[q] for q in transducer.initial):
        return other
    (state,) = waiting
    staying, leaving, ending = sorted(rest, key=lambda move: (move.final, move.target != state))
    ticks = all(reads_tick(move.transition) and move.transition.source == state for move in (staying, leaving))
    (atom,) = staying.transition.atoms if len(staying.transition.atoms) == 1 else (None,)
    passes = isinstance(atom, InWindow) and staying.target == state and leaving.transition.atoms == (Not(atom),)
    ends = ending.final and (ending.transition.source, ending.transition.test) == (leaving.target, Not(TICK))
    if not (ticks and passes and ends and not ending.transition.atoms and len(arrays.local) == 0):
        return other
    return Absence(frozenset(move.number for move in opening), state)


def find_absences(
    how: Absence,
    tables: TransducerTables,
    carried: Ints,
    whole: BatchRows,
    events: EventArrays,
    at_rows: Ints,
    measured: Callable[[Ints], BatchRows],
) -> Absences | None:
    """Find the matches within a batch; None if the automaton should read all of it.

    ``carried`` are the measures of the deadlines that are open before it. ``whole`` are all events of the input;
    ``events`` are its rows ``at_rows``. ``measured`` gives the rows of some events, by number.
    """
    window, schema, count = tables.deadlines[0], tables.schema, whole.count
    if count < limits.NARROWED_ROWS or not len(at_rows):
        return None
    opened = np.array([len(how.opening & tables.allowed(s)) for s in range(len(tables.relevant))])
    opening = np.flatnonzero(opened[events.signature])
    edges = bounds(window, whole, schema)
    # Later events have later deadlines, which pass at the same rows or later ones.
    last = int(np.searchsorted(edges, carried[-1])) if len(carried) else -1
    shown = np.searchsorted(edges, measures(window, measured(opening), schema))
    begin, end = np.searchsorted(shown, [last, count - 1], "right").tolist()
    after = int(opening[end]) if end < len(opening) else len(at_rows)
    before = int(np.searchsorted(at_rows, last, "right"))
    if last >= count or begin >= end or opened.max() > 1 or 2 * (before + len(at_rows) - after) > len(at_rows):
        return None
    front = some_events(events, slice(before))
    numbers, signatures = _read_before(how, tables, front, at_rows[:before], opening[begin:], last)
    some, until = opening[begin:end], shown[begin:end]
    first, stop = int(some[0]), int(np.searchsorted(at_rows, until[-1]))
    span = slice(first, max(stop, int(some[-1]) + 1))
    ends = np.array([how.waiting in tables.leaves(s) for s in range(len(tables.relevant))], np.uint8)
    held = np.empty(len(some), np.uint8)
    slots = np.full(1 << (span.stop - first).bit_length(), -1, np.int32)
    not_followed(events.keys[span], at_rows[span], ends[events.signature[span]], some - first, until, slots, held)
    chosen = np.flatnonzero(held)
    matches = _matches(how, tables, whole, events, at_rows, some[chosen], until[chosen])
    return (
        None if matches is None else Absences(numbers, signatures, last + 1, *matches, np.arange(after, len(at_rows)))
    )


def _read_before(
    how: Absence, tables: TransducerTables, events: EventArrays, at_rows: Ints, found: Ints, last: int
) -> tuple[Ints, Smalls]:
    """The numbers and signatures of events up to row ``last``, which are given; the ``found`` open no deadline."""
    signatures, kept = events.signature.copy(), np.ones(len(at_rows), bool)
    apart = found[found < len(at_rows)]
    for signature in np.unique(signatures[apart]).tolist():
        other = tables.without(signature, how.opening)
        same = apart[signatures[apart] == signature]
        # The last row may be of the key whose deadlines it shows.
        signatures[same], kept[same] = other, tables.relevant[other] | (at_rows[same] == last)
    numbers = np.flatnonzero(kept)
    return numbers, signatures[numbers]


def _matches(
    how: Absence,
    tables: TransducerTables,
    whole: BatchRows,
    events: EventArrays,
    at_rows: Ints,
    some: Ints,
    shown: Ints,
) -> tuple[CountedMatches, Moments] | None:
    """The matches of ``some`` events, whose deadlines rows have ``shown``, in the order of the report.

    None if more than two are detected together, as only the automaton's graph knows their order.
    """
    arrays, keys = tables.arrays, events.keys[some]
    number_of = np.zeros(whole.count, np.int64)
    number_of[at_rows] = np.arange(len(at_rows))
    # A row of the same key shows its deadlines last.
    own = (at_rows[number_of[shown]] == shown) & (events.keys[number_of[shown]] == keys).all(axis=1)
    order = sorted_by_row(shown, own, *keys.T, -some)
    some, shown, own, keys = some[order], shown[order], own[order], keys[order]
    differs = (np.diff(shown) != 0) | (np.diff(own) != 0) | (np.diff(keys, axis=0) != 0).any(axis=1)
    begins = np.append([True] * bool(len(some)), differs).astype(bool)
    if len(some) > 2 and not (begins[1:-1] | begins[2:]).all():
        return None
    rows, positions = shown[begins], events.position[some]
    assert tables.schema.time is not None
    times = whole.batch.column(tables.schema.time).take(pa.array(rows))
    moments = Moments(pa.array(whole.positions_at(rows)[0]), times, positions[begins], _NOTHING)
    opened = [min(how.opening & tables.allowed(s), default=0) for s in range(len(tables.relevant))]
    labels = arrays.transitions[opened, layout.T_LABEL][events.signature[some]]
    make = partial(single_events, positions, labels, moments.positions[np.cumsum(begins) - 1])
    return CountedMatches(len(some), make, single=len(rows) == len(some)), moments
