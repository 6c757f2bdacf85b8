"""The papers' streams and automata, written down by hand, and random ones (Hypothesis strategies)."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event
from hypothesis import strategies as st

from cerflow.automata import (
    MARKED,
    SKIPPED,
    Stream,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    compile_sremo,
)
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import ComplexEvent, support
from cerflow.language.condition import Condition
from cerflow.language.parser import parse_condition
from cerflow.language.sremo import Sremo, Windowed
from support.generators.sremo import expressions


def condition(text: str) -> Condition:
    """A condition on the event read (bare attributes) and registers."""
    return parse_condition(text, bare_attributes=True)


def edge(source: Any, target: Any, text: str | None = None, output: str = "⊗", *writes: str) -> SymbolicTransition:
    """A transition as the papers write it; no text is ε."""
    return SymbolicTransition(
        source=source,
        target=target,
        condition=None if text is None else condition(text),
        output=MARKED if output == "•" else SKIPPED,
        writes=frozenset(writes),
    )


def word(types: str, values: Any = None) -> Stream:
    """One event for each letter, with ``id`` 1 where no values are given."""
    ids = values or [1] * len(types)
    return Stream.from_dicts([{"type": type_, "id": id_} for type_, id_ in zip(types, ids)])


def supports(found: Any) -> set[Any]:
    """Matches as sets of positions; a match with its position keeps it."""
    return {(m[0], support(m[1])) if isinstance(m, tuple) else support(m) for m in found}


def concatenated(first: ComplexEvent, second: ComplexEvent, split: int) -> ComplexEvent:
    """``M1 · M2`` where the second begins at a position of the whole."""
    return first | {(label, position + split) for label, position in second}


#: 004 Figure 4 (Figure 13 with other letters).
FIGURE_4 = SymbolicRegisterTransducer.of(
    [
        edge("qs", "qs", "TRUE"),
        edge("qs", "q1", "type = 'B'", "•", "r"),
        edge("q1", "q1", "TRUE"),
        edge("q1", "qf", "type = 'S' AND id = r.id", "•"),
    ],
    start="qs",
    finals=["qf"],
)

#: 004 equation 2, and its stream (Table 1); positions here count from 0.
E1 = "[type = 'B'] MARK INTO r1 . [TRUE]* . [type = 'S' AND id = r1.id] MARK"
TABLE_1 = Stream.from_dicts(
    [
        {"type": "B", "id": 1, "price": 22, "volume": 300},
        {"type": "B", "id": 1, "price": 24, "volume": 225},
        {"type": "B", "id": 2, "price": 32, "volume": 1210},
        {"type": "S", "id": 1, "price": 70, "volume": 760},
        {"type": "S", "id": 1, "price": 68, "volume": 2000},
        {"type": "B", "id": 2, "price": 33, "volume": 95},
    ]
)

#: 004 equation 4.
E2 = (
    "([type = 'B' AND price < 10] MARK INTO r1 | [type = 'B' AND price > 500] MARK INTO r1)"
    " . [type = 'S' AND id = r1.id] MARK"
)


@st.composite
def compiled(
    draw: st.DrawFn, depth: int = 2, most: int = 5_000, timed: bool = False
) -> tuple[Sremo, SymbolicRegisterTransducer]:
    """A random expression and its transducer; ``timed`` ones have windows of time and of attribute ``n``, too."""
    expression = draw(expressions(depth, timed=True, operator=Windowed) if timed else expressions(depth))
    try:
        transducer = compile_sremo(expression, most=most)
    except (QueryError, UnsupportedQueryError) as error:
        event(error.reason[:30])
        assume(False)
        raise
    return expression, transducer
