"""A window on the marked events (004 Definition 39), for automata of all models, without unrolling them.

The papers unroll, which bounds the length of strings (erratum 11.6) and makes a tree. To exclude too long matches it is
enough to count the events since the first mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from cerflow.base.errors import expect
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow, DurationWindow, Window
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.theory.papers.model.automaton import Effect, TransitionLike
from cerflow.theory.papers.model.faults import AutomatonError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for
from cerflow.theory.papers.model.srt import SymbolicRegisterTransducer


@defined_for(CEA, UCEA, SRT, RMA)
def restrict_to_window(automaton: AnyA, window: int) -> AnyA:
    """The matches M with max(M) - min(M) < ``window`` events, and the empty one.

    A state is a pair of a state and the number of events read since the first marked one, inclusive: 0 before it, and
    ``window`` + 1 once no further event may be marked.
    """
    expect(window, int, "a window must be a whole number of events")
    if window < 1:
        raise AutomatonError("a window has at least one event")

    def step(age: int, t: TransitionLike) -> Iterator[tuple[int, Effect]]:
        after = age if t.condition is None else min(age + 1, window + 1) if age or t.output else 0
        if not (t.output and after > window):
            yield after, t.effect

    return automaton.tracked(0, step, registers=automaton.registers)


@defined_for(SRT)
def restrict_to_extent(
    transducer: SymbolicRegisterTransducer, window: Window, register: str
) -> SymbolicRegisterTransducer:
    """The matches M whose last event is within a window, of time or of an attribute, of the first; and the empty one.

    The first marked event is kept in ``register``, which must be new. A state is a pair of a state and 0 before the
    first mark, 1 while another one must follow, 2 after the last one, which alone is compared with the first.
    """

    def step(phase: int, t: TransitionLike) -> Iterator[tuple[int, Effect]]:
        condition, output, writes = t.effect
        if condition is None or not output:
            yield phase, t.effect
        elif phase < 2:
            yield 1, (condition, output, writes if phase else writes | {register})
            test = conjunction([*conjuncts(condition), _in_window(window, register if phase else None)])
            yield 2, (test, output, writes)

    return transducer.tracked(0, step, lambda phase: phase != 1)


def _in_window(window: Window, first: str | None) -> c.Condition:
    """Whether the event read lies in the window that begins with the event in a register, or with itself."""
    match window:
        case DurationWindow(microseconds):
            values: list[c.Expression] = [c.Function("time", (c.LabelReference(r),)) for r in (None, first)]
            size = c.Literal(timedelta(microseconds=microseconds))
        case AttributeWindow(bound, attribute):
            values = [c.Attribute(r, attribute) for r in (None, first)]
            size = c.Literal(bound)
        case _:
            raise TypeError(f"{type(window).__name__} measures no values")
    return c.Comparison(Operator.LT, c.Arithmetic("-", *values), size)
