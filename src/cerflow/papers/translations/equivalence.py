"""Comparison of the matches of two automata on every string.

This is undecidable in general (universality of register automata is), but decidable if registers hold finitely many
values, for example if there are none.
"""

from __future__ import annotations

import pyarrow as pa

from cerflow.deciding.budget import Budget
from cerflow.deciding.equivalence import Answer, Witness, compare_transducers
from cerflow.papers.model.automaton import Automaton
from cerflow.papers.model.runs import accepts
from cerflow.papers.translations.engine_model import to_engine
from cerflow.schema import Schema

__all__ = ["difference"]


def difference(
    first: Automaton,
    second: Automaton,
    *,
    schema: Schema | None = None,
    steps: int | None = None,
) -> Answer:
    """Whether some string has a match in only one of the automata, with a shortest such string.

    Automata without memory are compared by their complex events, UCEA including the labels.

    All strings count: attributes may be of any kind that fits the conditions and may be null; a `Schema` fixes their
    kinds.
    The answer is unknown if a condition cannot be analysed. Raises `UnsupportedQueryError` for automata whose registers
    matter, or if more than ``steps`` steps would be needed.
    """
    empty = [a.model.anywhere and accepts(a, ()) for a in (first, second)]
    if empty[0] != empty[1]:
        return Answer(True, Witness((), pa.schema([]), frozenset(), int(empty[1])))
    return compare_transducers(to_engine(first), to_engine(second), schema=schema, budget=Budget(steps))
