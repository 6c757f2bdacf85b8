"""NOT FOLLOWED BY: runs that wait for a deadline, without a match of another formula in the meantime (spec §10)."""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.automata.compile.negation import EventsRead, ExcludedRuns, Memory
from cerflow.automata.model.clock import PAUSE, TICK, may_read_events, parted, reads_tick
from cerflow.automata.model.fragment import Fragment, RegisterFile, sequence, track, union
from cerflow.automata.model.transducer import Transition, Write
from cerflow.base.graphs import reached_along
from cerflow.language.condition import Attribute, Condition, IsNull, Not
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, NotFollowedBy, Window
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.conditions.guards import InWindow, Measure, Satisfied, Stored


def waits_for_ticks(root: Node) -> bool:
    """Whether a formula has deadlines that events of others, or none at all, show to have passed."""
    return any(isinstance(node, NotFollowedBy) and not isinstance(node.window, CountWindow) for node in walk(root))


def waits_for_time(root: Node) -> bool:
    """Whether a formula has deadlines that events of any partition show to have passed."""
    return any(isinstance(node, NotFollowedBy) and isinstance(node.window, DurationWindow) for node in walk(root))


def not_followed_by(
    operand: Fragment, excluded: Fragment, window: Window, read: EventsRead, registers: RegisterFile, *, ticking: bool
) -> Fragment:
    """``φ NOT FOLLOWED BY ψ FOR window``: at the end of φ a register takes the measure of the event, and the run waits.

    Meanwhile it follows the runs of ψ from every later event on, as for UNLESS. With ``ticking`` it may meet ticks.
    """
    begun = Stored(registers.value(1, f"where the deadline of {show(window)} begins"), 0)
    waiting, done = operand.states, operand.states + 1
    before = InWindow(begun, window)
    operand, last = _knowing_last(operand, window, registers) if ends_late(operand) else (operand, begun)
    opened = [each for t in operand.endings() for each in _opened(t, waiting, done, begun, last, window)]
    waits = _waits(waiting, done, before, ticking)
    whole = Fragment(done + 1, operand.initial, {done}, [*operand.transitions, *opened, *waits])
    watch = ExcludedRuns(operand, excluded, read, registers, after=True)
    patient = not any(reads_tick(t) for t in excluded.transitions)

    def step(memory: Memory | None, t: Transition) -> Iterator[tuple[Memory | None, Transition]]:
        if t.target == waiting and t.source != waiting:
            yield watch.begin, t
        elif memory is None:
            yield None, t
        elif patient and reads_tick(t):
            yield None if t.target == done else memory, t
        else:
            for after, changed in watch.past(memory, t):
                yield None if t.target == done else after, changed

    start: Memory | None = None
    return track(whole, start, step).trimmed()


def _opened(
    t: Transition, waiting: int, done: int, begun: Stored, last: Stored, window: Window
) -> Iterator[Transition]:
    """The versions of a transition that completes φ, now into waiting.

    If it completes φ with a tick, the deadline begins with the ``last`` event before it, and may have passed as well.
    """
    wait, before = t.moved(t.source, waiting), InWindow(last, window)
    if not reads_tick(t):
        measured = [IsNull(Attribute(None, window.attribute), True)] if isinstance(window, AttributeWindow) else []
        yield wait.guarded(measured).writing(Write(begun.register, (Measure(window),), fresh=True))
        return
    wait = wait.writing(Write(begun.register, (last,), fresh=True))
    if isinstance(window, CountWindow):
        yield wait
        return
    known = [IsNull(last, True)] if isinstance(window, AttributeWindow) else []
    yield wait.guarded([*known, _still(before)])
    yield t.moved(t.source, done).guarded([Not(before)])


def _knowing_last(operand: Fragment, window: Window, registers: RegisterFile) -> tuple[Fragment, Stored]:
    """The runs, that store the measure of the last event where they may end with a tick."""
    last = Stored(registers.value(1, f"last event, measured for {show(window)}"), 0)
    keep = Write(last.register, (Measure(window),), fresh=True)
    ticks = ((t.target, t.source) for t in operand.transitions if reads_tick(t))
    ending = reached_along(ticks, (t.source for t in operand.endings() if reads_tick(t)))
    found: list[Transition] = []
    for t in operand.transitions:
        if t.target not in ending or reads_tick(t):
            found.append(t)
            continue
        for each in parted(t):
            found.append(each.writing(keep) if may_read_events(each) else each)
    return operand.with_transitions(found), last


def ends_late(operand: Fragment) -> bool:
    """Whether a match of an operand may be complete only once a deadline has passed."""
    return any(reads_tick(t) for t in operand.endings())


def sequence_in_time(left: Fragment, right: Fragment, optional: tuple[bool, bool]) -> Fragment:
    """``φ : ψ`` where φ may end with a tick: no event may come between the last one that φ marks and the tick."""
    joined = sequence(ending_marked(left), right, (optional[0], False), joins_in_time)
    return union(joined, left) if optional[1] else joined


def joins_in_time(t: Transition) -> bool:
    """Whether the right side of ``φ : ψ`` may follow an ending of `ending_marked`."""
    return bool(t.labels) or reads_tick(t)


def ending_marked(operand: Fragment) -> Fragment:
    """The runs of a part; runs that end with a tick are kept only if they have labelled the last event before it."""

    def step(marked: bool, t: Transition) -> Iterator[tuple[bool, Transition]]:
        if reads_tick(t):
            if marked or t.target not in operand.final:
                yield marked, t
            return
        for each in parted(t):
            yield bool(each.labels) if may_read_events(each) else marked, each

    return track(operand.copy(), False, step).trimmed()


def _still(before: InWindow) -> Condition:
    """That a deadline has not passed; an event without the attribute ends none."""
    return Not(Satisfied(Not(before))) if isinstance(before.window, AttributeWindow) else before


def _waits(waiting: int, done: int, before: InWindow, ticking: bool) -> list[Transition]:
    """The transitions of a run that waits, given the condition that the deadline has not passed."""
    if isinstance(before.window, CountWindow):
        # The event that ends the wait is the last one before the deadline.
        test = conjunction([Not(TICK), Not(PAUSE)]) if ticking else conjunction([])
        loops = [Transition(waiting, waiting, thing) for thing in (TICK, PAUSE)] if ticking else []
        return [Transition(waiting, waiting, test, (before,)), Transition(waiting, done, test, (Not(before),)), *loops]
    return [
        Transition(waiting, waiting, Not(TICK)),
        Transition(waiting, waiting, TICK, (_still(before),)),
        Transition(waiting, done, TICK, (Not(before),)),
    ]


def ended_later(operand: Fragment) -> Fragment:
    """The runs of a part; runs that end with a tick are accepted at the next step, which reads an event or a pause."""
    ending = [t for t in operand.endings() if reads_tick(t)]
    if not ending:
        return operand
    passed, done = operand.states, operand.states + 1
    others = [t for t in operand.transitions if not (t.target in operand.final and reads_tick(t))]
    leaving = {t.source for t in operand.transitions}
    added = [
        *(t.moved(t.source, passed) for t in ending),
        # A final state may be one from which runs continue.
        *(t for t in ending if t.target in leaving),
        Transition(passed, passed, TICK),
        Transition(passed, done, Not(TICK)),
    ]
    return Fragment(done + 1, operand.initial, operand.final | {done}, [*others, *added]).trimmed()
