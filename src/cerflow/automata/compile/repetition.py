"""``φ{n,m}`` and ``φ:{n,m}``: written out where that is small, else counted in a register (spec §10)."""

from __future__ import annotations

from cerflow.automata.compile.deadlines import ending_marked, ends_late, joins_in_time
from cerflow.automata.model import fragment
from cerflow.automata.model.clock import with_patience
from cerflow.automata.model.fragment import Fragment, Joins, RegisterFile, iterate, marks, sequence, union
from cerflow.automata.model.transducer import Transition, Write
from cerflow.base import limits
from cerflow.base.operators import Operator
from cerflow.language.condition import Arithmetic, Comparison, Condition, Expression, If, Literal
from cerflow.language.formula import Repetition
from cerflow.logic.conditions.guards import Stored


def needs_counter(operand: Fragment, formula: Repetition) -> bool:
    """Whether the repetition is too large to be written out."""
    copies = formula.most or max(1, formula.least)
    # Neighbours in time share a state, and whole columns have no counter.
    each = operand.states - 1 if formula.strict else operand.states
    return copies > 1 and copies * each > limits.REPEATED_STATES - 2


def repeat(operand: Fragment, formula: Repetition, counter: RegisterFile | None) -> Fragment:
    """The operand as often as ``formula`` says, at least once, counted in a new register of ``counter``.

    Without ``counter`` it is written out; raises `UnsupportedQueryError` if it becomes too large.
    """
    least = max(1, formula.least)
    if not formula.strict or not ends_late(operand):
        return _repeated(operand, least, formula.most, counter, marks if formula.strict else None)
    if formula.most == 1:
        return operand
    # All repetitions but the last must end as the left side of `:`.
    fewer = None if formula.most is None else formula.most - 1
    before = with_patience(_repeated(ending_marked(operand), max(1, least - 1), fewer, counter, joins_in_time))
    whole = sequence(before, operand.copy(), joins=joins_in_time)
    return union(whole, operand) if least == 1 else whole


def _repeated(operand: Fragment, least: int, most: int | None, counter: RegisterFile | None, joins: Joins) -> Fragment:
    if most is None and least == 1:
        return iterate(operand, joins)
    if (most or least) == 1:
        return operand
    if counter is not None:
        return _counted(operand, least, most, joins, counter)
    return _written_out(operand, least, most, joins)


def _written_out(operand: Fragment, least: int, most: int | None, joins: Joins) -> Fragment:
    whole = operand.copy() if most is not None else iterate(operand.copy(), joins)
    for k in range((most or least) - 1, 0, -1):
        fragment.check_fragment_size(whole)
        # Only what follows may be absent: otherwise one and the same event could be read by several copies.
        whole = sequence(operand.copy(), whole, (False, k >= least and most is not None), joins)
    return whole


def _counted(operand: Fragment, least: int, most: int | None, joins: Joins, registers: RegisterFile) -> Fragment:
    """Two copies: the first repetition, and all others; at the end of each of these a register counts it."""
    register = registers.value(1, "repetitions")
    done = Stored(register, 0)
    one_more = Arithmetic("+", done, Literal(1))
    if most is None:
        # More than the bound asks for need not be distinguished.
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
        if joins is None or joins(t):
            for state in sorted(again.initial) if joins is None else [between]:
                found.append(t.moved(source, state).guarded(more).writing(write))
        if leave:
            found.append(t.moved(source, final).guarded(enough if write is step else []))

    for t in operand.endings():
        end(t, t.source, [], begin, least == 1)
    for t in again.endings():
        end(t, t.source, goes_on, step, True)
    if joins is not None:
        for t in again.beginnings():
            if t.labels:
                found.append(t.moved(between, t.target))
                if t.target in again.final:
                    end(t, between, goes_on, step, True)
    return Fragment(final + 1, set(operand.initial), {final}, found).trimmed()
