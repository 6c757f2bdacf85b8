"""NOT FOLLOWED BY: runs that wait for a deadline, without a match of another formula meanwhile (spec §10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cerflow.automata.compile.conditions import guarded
from cerflow.automata.compile.negation import ExcludedRuns
from cerflow.automata.compile.run_sets import RunSet
from cerflow.automata.model.clock import PAUSE, TICK, reads_tick
from cerflow.automata.model.fragment import Fragment, track, without_dead_states
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.conditions.connectives import conjunction
from cerflow.conditions.guards import InWindow, Measure, Satisfied, Stored
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Attribute, Condition, IsNull, Not
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, NotFollowedBy, Window
from cerflow.language.node import Node, walk
from cerflow.language.printer import show

__all__ = ["not_followed_by", "refuse_deadline", "settled", "waits_for_ticks", "waits_for_time"]


def waits_for_ticks(root: Node) -> bool:
    """Whether a formula has deadlines that events of others, or none at all, show to have passed."""
    return any(isinstance(node, NotFollowedBy) and not isinstance(node.window, CountWindow) for node in walk(root))


def waits_for_time(root: Node) -> bool:
    """Whether a formula has deadlines that events of any partition show to have passed."""
    return any(isinstance(node, NotFollowedBy) and isinstance(node.window, DurationWindow) for node in walk(root))


def not_followed_by(
    operand: Fragment, excluded: Fragment, window: Window, registers: RegisterFile, *, ticking: bool
) -> Fragment:
    """``φ NOT FOLLOWED BY ψ FOR window``: at the end of φ a register takes the measure of the event, and the run waits.

    Meanwhile it follows the runs of ψ from every later event on, as for UNLESS. With ``ticking`` it may meet ticks.
    """
    begun = Stored(registers.add(Register(Accumulation.VALUE, 1, f"where the deadline of {show(window)} begins")), 0)
    waiting, done = operand.states, operand.states + 1
    opening = Write(begun.register, (Measure(window),), fresh=True)
    measured = [IsNull(Attribute(None, window.attribute), True)] if isinstance(window, AttributeWindow) else []
    opened = [
        replace(guarded(t.moved(t.source, waiting), measured), writes=(*t.writes, opening)) for t in operand.endings()
    ]
    waits = _waits(waiting, done, InWindow(begun, window), ticking)
    whole = Fragment(done + 1, operand.initial, {done}, [*operand.transitions, *opened, *waits])
    watch = ExcludedRuns(excluded, registers)

    def step(memory: RunSet | None, t: Transition) -> Iterator[tuple[RunSet | None, Transition]]:
        if t.target == waiting and t.source != waiting:
            yield watch.followed.beginning(), t
        elif memory is None:
            yield None, t
        elif reads_tick(t):
            yield None if t.target == done else memory, t
        else:
            for after, changed in watch.past(memory, t):
                yield None if t.target == done else after, changed

    start: RunSet | None = None
    return without_dead_states(track(whole, start, step))


def _waits(waiting: int, done: int, before: InWindow, ticking: bool) -> list[Transition]:
    """The transitions of a run that waits, given the condition that the deadline has not passed."""
    if isinstance(before.window, CountWindow):
        # The event that reaches the deadline is the last one before it.
        test = conjunction([Not(TICK), Not(PAUSE)]) if ticking else conjunction([])
        loops = [Transition(waiting, waiting, thing) for thing in (TICK, PAUSE)] if ticking else []
        return [
            Transition(waiting, waiting, test, (before,)),
            Transition(waiting, done, test, (Not(before),)),
            *loops,
        ]
    # An event without the attribute does not reach the deadline.
    still: Condition = Not(Satisfied(Not(before))) if isinstance(before.window, AttributeWindow) else before
    return [
        Transition(waiting, waiting, Not(TICK)),
        Transition(waiting, waiting, TICK, (still,)),
        Transition(waiting, done, TICK, (Not(before),)),
    ]


def settled(operand: Fragment) -> Fragment:
    """The runs, of which those that end with a tick are accepted with what comes next: an event, or a pause."""
    ending = [t for t in operand.endings() if reads_tick(t)]
    if not ending:
        return operand
    passed, done = operand.states, operand.states + 1
    others = [t for t in operand.transitions if not (t.target in operand.final and reads_tick(t))]
    # A final state may be one from which runs go on.
    on = [t for t in operand.transitions if t.target in operand.final and reads_tick(t)]
    leaving = {t.source for t in operand.transitions}
    added = [
        *(t.moved(t.source, passed) for t in ending),
        *(t for t in on if t.target in leaving),
        Transition(passed, passed, TICK),
        Transition(passed, done, Not(TICK)),
    ]
    return without_dead_states(Fragment(done + 1, operand.initial, operand.final | {done}, [*others, *added]))


def refuse_deadline(operand: Fragment, where: str, way_out: str) -> None:
    """Raise `UnsupportedQueryError` for an operand that is complete only once a deadline has passed."""
    if any(reads_tick(t) for t in operand.endings()):
        raise UnsupportedQueryError(
            f"a formula that ends with NOT FOLLOWED BY … FOR a duration or an attribute cannot stand {where}",
            hint=way_out,
        )
