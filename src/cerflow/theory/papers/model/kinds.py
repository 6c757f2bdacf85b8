"""The automata of the literature that a transducer is an instance of (004 §2.1, App. A.7)."""

from __future__ import annotations

from enum import StrEnum

from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import walk
from cerflow.theory.papers.model.automaton import Automaton
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.models import RMA, SRT, defined_for


class AutomatonKind(StrEnum):
    """Special cases of symbolic register transducers."""

    SYMBOLIC = "symbolic automaton"  # no registers, no output
    SYMBOLIC_REGISTER = "symbolic register automaton"  # no output
    REGISTER = "register automaton"  # no output; registers are only compared with the event by = and ≠
    MATCH = "match automaton"  # no registers


@defined_for(SRT, RMA)
def kinds(transducer: Automaton) -> frozenset[AutomatonKind]:
    """The special cases that a transducer belongs to; a register that is never read does not count."""
    silent = not any(t.output for t in transducer.transitions)
    free = not transducer.read
    found = set()
    if free:
        found.add(AutomatonKind.MATCH)
    if silent:
        found.add(AutomatonKind.SYMBOLIC_REGISTER)
        if free:
            found.add(AutomatonKind.SYMBOLIC)
        if all(t.condition is None or _compares_with_registers(t.condition) for t in transducer.transitions):
            found.add(AutomatonKind.REGISTER)
    return frozenset(found)


def _compares_with_registers(condition: c.Condition) -> bool:
    """Whether a condition only tests whether the event equals the contents of registers."""
    for current in walk(condition):
        match current:
            case c.And() | c.Or() | c.Not() | c.Constant():
                continue
            case c.Comparison(Operator.EQ | Operator.NE) if register_selection(current):
                continue
            case c.Condition():
                return False
    return True
