"""Random transducers without registers (Hypothesis strategies), over the attributes of `support.generators.queries`."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Function,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Not,
    Or,
)
from cerflow.language.formula import CountWindow
from cerflow.logic.conditions.guards import Satisfied, TypeTest
from support.generators.limits import INTEGERS, mostly


def _attribute(name: str) -> Attribute:
    return Attribute(None, name)


@st.composite
def conditions_at_hand(draw: st.DrawFn, depth: int) -> Condition:
    """Conditions on the current event, as transitions have them."""
    if depth:
        match draw(st.integers(0, 9)):
            case 0 | 1:
                return And(draw(conditions_at_hand(depth - 1)), draw(conditions_at_hand(depth - 1)))
            case 2:
                return Or(draw(conditions_at_hand(depth - 1)), draw(conditions_at_hand(depth - 1)))
            case 3 | 4:
                return Not(draw(conditions_at_hand(depth - 1)))
            case 5 | 6:
                return Satisfied(draw(conditions_at_hand(depth - 1)))
    number = draw(mostly(st.integers(0, 2), INTEGERS))
    return draw(
        st.sampled_from(
            (
                Constant(True),
                TypeTest("A"),
                TypeTest("B"),
                Comparison(Operator.GE, _attribute("v"), Literal(number)),
                Comparison(Operator.NE, _attribute("v"), _attribute("w")),
                In(_attribute("k"), (Literal(number), Literal(None)), number == 1),
                In(_attribute("v"), (Literal(1), Literal(number)), number == 1),
                Between(_attribute("v"), Literal(0), Literal(number), number == 2),
                Between(_attribute("w"), None, Literal(number)),
                Between(_attribute("w"), None, None, number == 1),
                Like(_attribute("s"), "p%", number == 1),
                IsNull(_attribute("v"), number == 1),
                Comparison(Operator.LT, Function("position", (LabelReference(None),)), Literal(min(number, 2**62) + 1)),
            )
        )
    )


@st.composite
def transducers(draw: st.DrawFn, labels: tuple[str, ...] = ("x", "A", TYPE_LABEL)) -> Transducer:
    """Up to three states and a few transitions; loops that skip, labels, windows."""
    states = draw(st.integers(1, 3))
    state = st.integers(0, states - 1)
    some = st.frozensets(state, min_size=1)
    made = [Transition(q, q) for q in draw(st.frozensets(state))]
    for _ in range(draw(st.integers(1, 4))):
        marked = draw(st.frozensets(st.sampled_from(labels), max_size=2))
        made.append(Transition(draw(state), draw(state), draw(conditions_at_hand(2)), labels=marked))
    window = CountWindow(2) if draw(st.integers(0, 5)) == 0 else None
    return Transducer(states, draw(some), draw(some), tuple(made), (), window)
