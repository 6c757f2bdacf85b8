"""Whether a stream may be cut into slices of time that are recognised separately, and by which window.

Where no match is longer than a window, what is detected in a slice depends on nothing that lies further back than one
window before it. Deadlines make the window longer, and it ends with the event before the one that shows them. Threads
over a table, tasks of Spark and readers of files all cut streams by this.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerflow.automata.model.clock import has_ticks, outlasting_states
from cerflow.automata.model.run_windows import reach_of_runs, window_of_runs, windows_needed
from cerflow.automata.model.transducer import Transducer
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.measures import is_global
from cerflow.language.condition import MATCH_NUMBER, PredicateCall, calls
from cerflow.language.formula import CountWindow, DurationWindow, NotFollowedBy, Window
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select


@dataclass(frozen=True)
class Division:
    """The window that bounds every match, None if the stream is not to be divided, and why.

    With ``late`` matches may be detected by the first event after the window, however late it comes.
    """

    window: Window | None
    reason: str
    late: bool = False


def divided(select: Select, transducer: Transducer, schema: Schema | None = None, *, threads: bool = False) -> Division:
    """Whether slices of the stream may be recognised apart from each other; ``transducer`` is that of the query.

    ANY and LIMIT choose among the matches of an event by these alone, so they choose the same in a slice. With
    ``threads`` of one process a query with predicates is not divided.
    """
    if threads and any(isinstance(node, PredicateCall) for node in walk(select)):
        return Division(None, "your own predicates are not called from several threads")
    if calls(select.projection, MATCH_NUMBER):
        return Division(None, "MATCH_NUMBER() counts the matches from the beginning of the stream")
    if schema is not None and schema.forget is not None:
        return Division(None, "a key starts again after a pause, which only a task that gets all its events can see")
    if select.consume is not Consumption.NONE:
        return Division(None, "CONSUME makes every match depend on those before it")
    window = reach_of_runs(transducer)
    if window is None and has_ticks(transducer):
        return Division(
            None,
            "any event of the whole stream may show that a deadline has passed, and nothing bounds the time from the "
            "first event of a match to its last deadline",
        )
    if window is None:
        what = "no window" if select.window is None else "the window is checked when a match ends, and nothing"
        return Division(None, f"{what} bounds how far back a match may depend on events")
    if window != window_of_runs(transducer) and _rounded(select, schema):
        return Division(None, "windows and deadlines cannot be added up exactly, because times are floats")
    if not is_global(window, bool(select.partition)):
        return Division(None, "the window passes separately for each partition")
    if isinstance(window, CountWindow) and select.streams:
        return Division(None, "the window counts the events of some streams only")
    if has_ticks(transducer) and isinstance(window, DurationWindow):
        return Division(window, f"windows and deadlines end {show(window)} after a match begins", late=True)
    return Division(window, "no match depends on events further back than the window")


def _rounded(select: Select, schema: Schema | None) -> bool:
    if schema is None or schema.time is None or schema.kind(schema.time) is not ValueKind.FLOAT:
        return False
    return sum(isinstance(node, DurationWindow) for node in walk(select)) > 1


def keys_kept(select: Select, transducer: Transducer, schema: Schema | None = None) -> str | None:
    """Why a key with a partial match is remembered for good, and what can be done; None if it is forgotten."""
    if not select.partition or (schema is not None and schema.forget is not None):
        return None
    window = window_of_runs(transducer)
    if window is not None and is_global(window, partitioned=True):
        return None
    if _time_ends_all(select, transducer):
        return None
    why = "its window ends only with a later event of that key"
    if window is None:
        why = "no window bounds its matches" if select.window is None else "its window is checked when a match ends"
    remedy = "WITHIN and a duration set a time" if has_ticks(transducer) else "forget= (--key-timeout) sets a time"
    return f"one with a partial match is remembered for good, as {why}; {remedy}"


def _time_ends_all(select: Select, transducer: Transducer) -> bool:
    """Whether every run that has begun waits for a deadline, or for events within a time."""
    if not transducer.initial <= transducer.skipping - transducer.final:
        return False  # a key without a run must be told from one that has not been seen
    # Deadlines that lie elsewhere than in time pass with the events of their own key.
    alone = any(isinstance(n, NotFollowedBy) and not isinstance(n.window, DurationWindow) for n in walk(select))
    waiting = set(range(transducer.states))
    if has_ticks(transducer) and not alone:
        waiting = outlasting_states(transducer)
    needed, leaving = windows_needed(transducer), transducer.leaving()
    return all(
        any(is_global(window, partitioned=True) for r in needed[q] if (window := transducer.registers[r].window))
        for q in waiting & {t.target for t in transducer.transitions if not t.stays}
        if leaving[q]
    )
