"""The windows that runs of a finished transducer must still satisfy, and how long runs may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import and_
from typing import Final

from cerflow.automata.model.clock import has_ticks, never_reads_tick, reads_tick
from cerflow.automata.model.transducer import Accumulation, Transducer, Transition, Write
from cerflow.base.graphs import settled_values
from cerflow.language.formula import CountWindow, DurationWindow, Window
from cerflow.language.node import walk
from cerflow.logic.conditions.guards import InWindow, Measure, Stored

#: An age that more windows add up to is taken to have no bound.
_SUMMANDS = 100
#: In place of a register: the event that is read.
_NOW: Final = -1

#: A register, and a window that began with its value.
_Timer = tuple[int, Window]
#: The greatest age at which runs enter a state, and those at which they may have read the values of its registers.
_Known = tuple[float, ...]


def windows_needed(transducer: Transducer) -> list[frozenset[int]]:
    """For each state, the registers with starts of windows that every path from it to a match still tests.

    Once such a window has passed, the run cannot lead to a match.
    """
    windows = frozenset(r for r, kept in enumerate(transducer.registers) if kept.window is not None)

    def before(t: Transition, after: frozenset[int]) -> frozenset[int]:
        asked = {a.start.register for a in t.atoms if isinstance(a, InWindow)}
        written = {w.register for w in t.writes if w.fresh}
        return (frozenset() if t.target in transducer.final else after - written) | asked

    edges = ((t.target, t.source, t) for t in transducer.transitions if not t.skips)
    needed = settled_values(dict.fromkeys(range(transducer.states), windows), edges, before, and_)
    return [needed[state] for state in range(transducer.states)]


def window_of_runs(transducer: Transducer) -> Window | None:
    """A window that bounds every run from the event with which it leaves the initial states to its detection.

    Before that event the run waits and remembers nothing. None if there is no such window.
    """
    if not transducer.initial <= transducer.skipping - transducer.final:
        return None
    begins = [t for t in transducer.transitions if t.source in transducer.initial and not t.stays]
    ends = [t for t in transducer.transitions if t.target in transducer.final]
    if transducer.window is not None and all(t.labels for t in (*begins, *ends)):
        return transducer.window
    again = any(t.target in transducer.initial and not t.stays for t in transducer.transitions)
    for number, register in enumerate(transducer.registers):
        if register.window is None or again:
            continue
        begin = Write(number, (Measure(register.window),), fresh=True)
        asked = InWindow(Stored(number, 0), register.window)
        writing = [t for t in transducer.transitions if any(w.register == number for w in t.writes)]
        begun = set(writing) <= set(begins) and all(begin in t.writes or t.target in transducer.final for t in begins)
        if begun and all(t in begins or asked in t.atoms for t in ends):
            return register.window
    return None


def reach_of_runs(transducer: Transducer) -> Window | None:
    """A window that contains every run, with the deadlines for which it waits; None if there is none.

    A match that a deadline completes is detected by the first event at or after the deadline, which may come much
    later. So with deadlines in time the window ends with the last event before the one that detects.
    """
    window = window_of_runs(transducer)
    if window is not None:
        return window
    begins = [t for t in transducer.transitions if t.source in transducer.initial and not t.stays]
    again = any(t.target in transducer.initial and not t.stays for t in transducer.transitions)
    waiting = transducer.initial <= transducer.skipping - transducer.final
    if again or not waiting or not all(map(never_reads_tick, begins)):
        return None
    kinds = {type(node) for t in transducer.transitions for atom in t.atoms for node in walk(atom)}
    for kind in (DurationWindow,) if has_ticks(transducer) else (DurationWindow, CountWindow):
        reach = _Ages(transducer, kind).reach() if kind in kinds else math.inf
        if reach != math.inf:
            # In time ages are less than the bound, unless a match is one event.
            return DurationWindow(max(1, int(reach))) if kind is DurationWindow else CountWindow(int(reach) + 1)
    return None


class _Ages:
    """Bounds on the age of runs: the microseconds, or the events, since the event with which a run began.

    ``kind`` is the kind of windows that is added up. A timer is *running* in a state if its window has not passed for
    any run there. Time may jump from one event to the next, but not past a deadline, where runs read a tick. So a run
    in time leaves a state with a running timer when the window ends, if the timer's value opened that deadline.
    """

    def __init__(self, transducer: Transducer, kind: type[DurationWindow | CountWindow]) -> None:
        self._transducer = transducer
        self._kind = kind
        self._ticking = has_ticks(transducer)
        self._moves = [t for t in transducer.transitions if not (t.source in transducer.initial and t.stays)]
        self._shown = all(t.labels for t in self._moves if t.source in transducer.initial)
        tested = {node for t in self._moves for atom in t.atoms for node in walk(atom) if isinstance(node, InWindow)}
        windows = {node.window for node in tested if isinstance(node.window, kind)}
        registers = [k for k, r in enumerate(transducer.registers) if r.keeps is Accumulation.VALUE and r.fields == 1]
        self._timers = frozenset((r, w) for r in registers for w in windows)
        self._values = {t: {r: self._value(t, r) for r in registers} for t in self._moves}
        opened = self._everywhere(self._opened_after) if self._ticking else [self._timers] * transducer.states
        self._opened: Sequence[frozenset[_Timer]] = opened
        applies = self._ticking or kind is CountWindow
        nothing = [frozenset[_Timer]()] * transducer.states
        self._running: Sequence[frozenset[_Timer]] = self._everywhere(self._running_after) if applies else nothing
        self._registers = registers
        whole = (transducer.window,) if isinstance(transducer.window, kind) else ()
        self._most = _SUMMANDS * max((self._size(w) for w in (*windows, *whole)), default=0)

    def _value(self, t: Transition, register: int) -> int | None:
        """The register whose value a register has after a transition, or `_NOW`; None if that is not known."""
        found: int | None = register
        for write in t.writes:
            if write.register == register:
                match write.row:
                    case (Measure(window),) if write.fresh and isinstance(window, self._kind):
                        found = _NOW if never_reads_tick(t) else None
                    case (Stored(other, 0),) if write.fresh and not write.where:
                        found = other
                    case _:
                        found = None
        return found

    def _everywhere(
        self, after: Callable[[Transition, frozenset[_Timer]], frozenset[_Timer]]
    ) -> Sequence[frozenset[_Timer]]:
        """For each state the timers of which something holds, as it does after every transition into it."""
        states, nothing = range(self._transducer.states), frozenset[_Timer]()
        begin = {q: nothing if q in self._transducer.initial else self._timers for q in states}
        found = settled_values(begin, ((t.source, t.target, t) for t in self._moves), after, and_)
        return [found[q] for q in states]

    def _opened_after(self, t: Transition, before: frozenset[_Timer]) -> frozenset[_Timer]:
        """The timers whose deadlines are open after a transition, or were."""
        measured = {row for write in t.writes for row in write.row if isinstance(row, Measure)}

        def opened(register: int, window: Window) -> bool:
            value = self._values[t][register]
            return Measure(window) in measured if value == _NOW else (value, window) in before

        return frozenset(timer for timer in self._timers if opened(*timer))

    def _running_after(self, t: Transition, before: frozenset[_Timer]) -> frozenset[_Timer]:
        on_time = self._ticking and never_reads_tick(t)

        def runs(register: int, window: Window) -> bool:
            value = self._values[t][register]
            if value is None or value == _NOW:
                return value == _NOW
            tested = InWindow(Stored(value, 0), window) in t.atoms
            return tested or (on_time and (value, window) in before)

        return frozenset(timer for timer in self._timers & self._opened[t.target] if runs(*timer))

    def reach(self) -> float:
        """The greatest age of runs that are detected; infinite if it has no bound that is found."""
        states = range(self._transducer.states)
        # What comes after a tick is taken to come with it, where ticks alone enter a state.
        entered = {q: all(reads_tick(t) for t in self._moves if t.target == q) for q in states}
        begin = {q: (-math.inf if entered[q] else math.inf, *(-math.inf for _ in self._registers)) for q in states}

        def along(t: Transition, before: _Known) -> _Known:
            age = self._age(t, before)
            values = dict(zip(self._registers, before[1:]))
            written = (math.inf if v is None else age if v == _NOW else values[v] for v in self._values[t].values())
            reached = -math.inf if t.source == t.target else min(age, before[0])
            return tuple(math.inf if value > self._most else value for value in (reached, *written))

        moves = ((t.source, t.target, t) for t in self._moves)
        known = settled_values(begin, moves, along, lambda one, other: tuple(map(max, one, other)))
        ends = [t for t in self._moves if t.target in self._transducer.final]
        return max((min(self._age(t, known[t.source]), known[t.source][0]) for t in ends), default=math.inf)

    def _age(self, t: Transition, before: _Known) -> float:
        """The greatest age of runs that read something with a transition."""
        if t.source in self._transducer.initial:
            return 0
        written = dict(zip(self._registers, before[1:]))
        tested = [(a.start.register, a.window) for a in t.atoms if isinstance(a, InWindow)]
        timers = (*(timer for timer in tested if timer in self._timers), *self._running[t.source])
        found = [written[register] + self._size(window) for register, window in timers]
        whole = self._transducer.window
        if t.labels and self._shown and isinstance(whole, self._kind):
            found.append(self._size(whole))
        return min(found, default=math.inf)

    def _size(self, window: Window) -> int:
        assert isinstance(window, DurationWindow | CountWindow)
        return window.microseconds if isinstance(window, DurationWindow) else window.events
