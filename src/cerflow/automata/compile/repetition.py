"""``φ{n,m}`` and ``φ:{n,m}``: written out where that is small, else counted in a register (spec §10)."""

from __future__ import annotations

from dataclasses import replace

from cerflow import limits
from cerflow.automata.compile.conditions import guarded
from cerflow.automata.model.fragment import (
    Fragment,
    check_fragment_size,
    iterate,
    iterate_strictly,
    sequence,
    sequence_strictly,
    without_dead_states,
)
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.conditions.guards import Stored
from cerflow.language.condition import Arithmetic, Comparison, Condition, Expression, If, Literal
from cerflow.language.formula import Repetition
from cerflow.values.operators import Operator

__all__ = ["needs_counter", "repeat"]


def needs_counter(operand: Fragment, formula: Repetition) -> bool:
    """Whether the repetition is too large to be written out."""
    copies = formula.most or max(1, formula.least)
    return copies > 1 and copies * operand.states > limits.REPEATED_STATES


def repeat(operand: Fragment, formula: Repetition, counter: RegisterFile | None) -> Fragment:
    """The operand as often as ``formula`` says, at least once, counted in a new register of ``counter``.

    Without ``counter`` it is written out; raises `UnsupportedQueryError` if it becomes too large.
    """
    least, strict = max(1, formula.least), formula.strict
    if formula.most is None and least == 1:
        return _endless(operand, strict)
    if (formula.most or least) == 1:
        return operand
    if counter is not None:
        return _counted(operand, least, formula.most, strict, counter)
    return _written_out(operand, least, formula.most, strict)


def _endless(operand: Fragment, strict: bool) -> Fragment:
    return iterate_strictly(operand) if strict else iterate(operand)


def _written_out(operand: Fragment, least: int, most: int | None, strict: bool) -> Fragment:
    join = sequence_strictly if strict else sequence
    whole = operand.copy() if most is not None else _endless(operand.copy(), strict)
    for k in range((most or least) - 1, 0, -1):
        check_fragment_size(whole)
        # Only what follows may be absent: otherwise one and the same event could be read by several copies.
        whole = join(operand.copy(), whole, (False, k >= least and most is not None))
    return whole


def _counted(operand: Fragment, least: int, most: int | None, strict: bool, registers: RegisterFile) -> Fragment:
    """Two copies: the first repetition, and all others; at the end of each of these a register counts it."""
    register = registers.add(Register(Accumulation.VALUE, 1, "repetitions"))
    done = Stored(register, 0)
    one_more = Arithmetic("+", done, Literal(1))
    if most is None:
        # More than the bound asks for need not be told apart.
        counted: Expression = If(Comparison(Operator.LT, done, Literal(least - 1)), one_more, done)
        goes_on: list[Condition] = []
    else:
        counted = one_more
        goes_on = [Comparison(Operator.LT, done, Literal(most - 1))]
    enough: list[Condition] = [Comparison(Operator.GE, done, Literal(least - 1))] if least > 2 else []
    begin = Write(register, (Literal(1),), fresh=True)
    step = Write(register, (counted,), fresh=True)

    again = operand.copy()
    again.move(operand.states)
    between, final = 2 * operand.states, 2 * operand.states + 1
    found = [*operand.transitions, *again.transitions]

    def end(t: Transition, source: int, more: list[Condition], write: Write, leave: bool) -> None:
        """A repetition ends with ``t``: another one begins if ``more`` holds, and if ``leave`` that was enough."""
        if t.labels or not strict:
            for state in [between] if strict else sorted(again.initial):
                found.append(_writing(guarded(t.moved(source, state), more), write))
        if leave:
            found.append(guarded(t.moved(source, final), enough if write is step else []))

    for t in operand.endings():
        end(t, t.source, [], begin, least == 1)
    for t in again.endings():
        end(t, t.source, goes_on, step, True)
    if strict:
        for t in again.beginnings():
            if t.labels:
                found.append(t.moved(between, t.target))
                if t.target in again.final:
                    end(t, between, goes_on, step, True)
    return without_dead_states(Fragment(final + 1, set(operand.initial), {final}, found))


def _writing(t: Transition, write: Write) -> Transition:
    return replace(t, writes=(*t.writes, write))
