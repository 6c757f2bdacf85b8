"""Windows inside a formula: the start of the complex event in a register, and a test at every later event of it.

The engine measures the window of a whole query, which leaves only a little to do here.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.automata.compile.conditions import guarded
from cerflow.automata.model.fragment import Fragment, track
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.model.transducer import Transition, Write
from cerflow.conditions.guards import InWindow, Measure, Stored
from cerflow.language.condition import Attribute, Condition, IsNull
from cerflow.language.formula import AttributeWindow, Window

#: The progress of a run: nothing marked yet, the last marked event has a measure, or it has none.
_BEFORE, _KNOWN, _UNKNOWN = range(3)


def restrict(operand: Fragment, window: Window, registers: RegisterFile) -> Fragment:
    """``φ WITHIN window``: the measure grows along the stream, so every marked event is tested against the first."""
    start = registers.value(1, "start of window", window)
    begin = Write(start, (Measure(window),), fresh=True)
    return _observe(operand, window, begin, [InWindow(Stored(start, 0), window)])


def know_ends(operand: Fragment, window: Window) -> Fragment:
    """The runs whose first and last marked events have a measure (only attributes may be missing)."""
    return _observe(operand, window, None, []) if isinstance(window, AttributeWindow) else operand


def hides_events(operand: Fragment, keep: frozenset[str] | None) -> bool:
    """Whether the output does not show where a complex event begins, or that it has ended.

    This happens if the projection on ``keep`` leaves out marked events, or if a run can end with an event that it does
    not mark (PROJECT).
    """
    hidden = keep is not None and any(t.labels and not t.labels & keep for t in operand.transitions)
    return hidden or any(not t.labels for t in operand.endings())


def _observe(operand: Fragment, window: Window, begin: Write | None, within: Sequence[Condition]) -> Fragment:
    attribute = Attribute(None, window.attribute) if isinstance(window, AttributeWindow) else None
    known = [] if attribute is None else [IsNull(attribute, True)]

    def step(place: int, t: Transition) -> list[tuple[int, Transition]]:
        if not t.labels:
            return [(place, t)]
        if place == _BEFORE:
            first = guarded(t, known)
            return [(_KNOWN, first if begin is None else first.writing(begin))]
        following = [(_KNOWN, guarded(t, [*known, *within]))]
        if attribute is not None:
            # Between the ends an event may lack the attribute, but not as the last one.
            following.append((_UNKNOWN, guarded(t, [IsNull(attribute)])))
        return following

    return track(operand, _BEFORE, step, lambda place: place != _UNKNOWN)
