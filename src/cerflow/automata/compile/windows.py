"""Where the marked events of a run lie: in a window, without a gap (STRICT), or from the first event that is read on.

For a window inside a formula, the start of the complex event is in a register, and tested at every later event of it.
The engine measures the window of a whole query, which leaves only a little to do here.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.automata.model.clock import may_read_events, parted, with_patience
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Transducer, Transition, Write
from cerflow.language.condition import Attribute, Condition, IsNull
from cerflow.language.formula import AttributeWindow, Window
from cerflow.logic.conditions.guards import InWindow, Measure, Stored

#: The progress of a run: nothing marked yet; the last marked event has a measure, or it has none; or, for STRICT,
#: marking without a gap, or all marked.
_BEFORE, _KNOWN, _UNKNOWN, _INSIDE, _AFTER = range(5)


def restrict(operand: Fragment, window: Window, registers: RegisterFile) -> Fragment:
    """``φ WITHIN window``: the measure grows along the stream, so every marked event is tested against the first."""
    start = registers.value(1, "start of window", window)
    begin = Write(start, (Measure(window),), fresh=True)
    return _observe(operand, window, [begin], [InWindow(Stored(start, 0), window)])


def window_in_register(transducer: Transducer) -> Transducer:
    """The transducer with the same matches that measures its window itself, from the start that a register holds."""
    if transducer.window is None:
        return transducer
    registers = RegisterFile()
    registers.registers += transducer.registers
    whole = restrict(Fragment.of(transducer), transducer.window, registers)
    return whole.finished(registers.registers, mentioned=transducer.mentioned)


def know_ends(operand: Fragment, window: Window) -> Fragment:
    """The runs whose first and last marked events have a measure (only attributes may be missing)."""
    return _observe(operand, window, [], []) if isinstance(window, AttributeWindow) else operand


def hides_events(operand: Fragment, keep: frozenset[str] | None) -> bool:
    """Whether the output does not show where a complex event begins, or that it has ended.

    This happens if the projection on ``keep`` leaves out marked events, or if a run can end with an event that it does
    not mark (PROJECT).
    """
    hidden = keep is not None and any(t.labels and not t.labels & keep for t in operand.transitions)
    return hidden or any(not t.labels for t in operand.endings())


def _observe(operand: Fragment, window: Window, begin: Sequence[Write], within: Sequence[Condition]) -> Fragment:
    attribute = Attribute(None, window.attribute) if isinstance(window, AttributeWindow) else None
    known = [] if attribute is None else [IsNull(attribute, True)]

    def step(place: int, t: Transition) -> list[tuple[int, Transition]]:
        if not t.labels:
            return [(place, t)]
        if place == _BEFORE:
            return [(_KNOWN, t.guarded(known).writing(*begin))]
        following = [(_KNOWN, t.guarded([*known, *within]))]
        if attribute is not None:
            # Between the ends an event may lack the attribute, but not as the last one.
            following.append((_UNKNOWN, t.guarded([IsNull(attribute)])))
        return following

    return track(operand, _BEFORE, step, lambda place: place != _UNKNOWN)


def contiguous(operand: Fragment, *, ticking: bool = False) -> Fragment:
    """``STRICT(φ)``: the runs without an unmarked event between their marked events (A_STRICT, P1 Theorem 4).

    Events that are only read may come before the marked ones and, if φ ends with such events, after them. With
    ``ticking`` there may be ticks and pauses in between.
    """

    def step(place: int, t: Transition) -> list[tuple[int, Transition]]:
        if t.labels:
            return [(_INSIDE, t)] if place != _AFTER else []
        if place == _INSIDE and ticking:
            return [(_AFTER if may_read_events(each) else _INSIDE, each) for each in parted(t)]
        return [(_BEFORE if place == _BEFORE else _AFTER, t)]

    # Most states after the marked events have no successors, and would look like hidden events if they stayed.
    found = track(operand, _BEFORE, step).trimmed()
    return with_patience(found) if ticking else found


def begin_at_once(operand: Fragment) -> Fragment:
    """``START(φ)``: the runs that mark the first event they read (P2 Theorem 6.2, which lacks the condition L ≠ ∅)."""

    def step(begun: bool, t: Transition) -> list[tuple[bool, Transition]]:
        return [(True, t)] if begun or t.labels else []

    return track(operand, False, step, lambda begun: begun).trimmed()
