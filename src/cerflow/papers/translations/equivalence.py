"""Whether two automata have the same matches on every string.

In general that cannot be decided (universality of register automata is undecidable); it can where registers hold
finitely many values, for example where there are none.
"""

from __future__ import annotations

import pyarrow as pa

from cerflow.deciding.budget import Budget
from cerflow.deciding.equivalence import Answer, Witness, compare_transducers
from cerflow.papers.model.cea import MemorylessAutomaton
from cerflow.papers.model.runs import accepts
from cerflow.papers.model.srt import Automaton
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
    """Whether some string has a match in one automaton that it lacks in the other, with one of the shortest.

    Automata without memory are compared by their complex events, those of UCEA with the labels.

    All strings count: attributes may be of any kind that fits the conditions and may be null; a `Schema` fixes their
    kinds. The answer is not known where a condition cannot be looked through. Raises `UnsupportedQueryError` for
    automata whose registers matter, or if more than ``steps`` steps would be needed.
    """
    empty = [not isinstance(a, MemorylessAutomaton) and accepts(a, ()) for a in (first, second)]
    if empty[0] != empty[1]:
        return Answer(True, Witness((), pa.schema([]), frozenset(), int(empty[1])))
    return compare_transducers(to_engine(first), to_engine(second), schema=schema, budget=Budget(steps))
