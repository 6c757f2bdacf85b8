"""Comparison of the matches of two automata on every string.

This is undecidable in general (universality of register automata is, 004 §6), but decidable if registers hold finitely
many values, for strings of bounded length, and where the outputs of a string determine the run.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from cerflow.base.errors import ArgumentError, one_of
from cerflow.base.events import Stream
from cerflow.base.schema import Schema
from cerflow.language.automaton import Model
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.deciding.equivalence import compare_transducers
from cerflow.theory.deciding.witnesses import Answer, Witness
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton
from cerflow.theory.papers.model.runs import accepts, matches, reported_matches
from cerflow.theory.papers.translations.conversions import to_engine


def difference(
    first: Automaton,
    second: Automaton,
    *,
    schema: Schema | None = None,
    steps: int | None = None,
    output: Literal["labels", "positions"] = "labels",
) -> Answer:
    """Whether some string has a match in only one of the automata, with a shortest such string.

    Automata without memory are compared by their complex events, UCEA including the labels; with
    ``output="positions"`` by the marked positions alone (P2 §4). `cerflow.difference` compares formulas and queries.

    All strings count: attributes may be of any kind that fits the conditions and may be null; a `Schema` fixes their
    kinds.
    A string that is found is replayed by the definition of runs. With registers the extra ``cerflow[decide]`` answers.
    The answer is unknown, with the reason, if a condition cannot be analysed or nothing is found and nothing proved.
    Raises `UnsupportedQueryError` for automata whose registers matter if the extra is not installed, and if more than
    ``steps`` steps would be needed for automata without memory.
    """
    one_of(output, "output", "labels", "positions")
    for given in (first, second):
        if not isinstance(given, Automaton):
            raise ArgumentError(
                f"difference compares automata, not {type(given).__name__}; cerflow.difference compares formulas"
            )
    if output == "positions":
        first, second = (
            automaton.rewritten(lambda t: (t.condition, MARKED if t.output else SKIPPED, t.writes))
            for automaton in (first, second)
        )
    empty = [a.model.anywhere and accepts(a, ()) for a in (first, second)]
    if empty[0] != empty[1]:
        return Answer(True, Witness((), pa.schema([]), frozenset(), int(empty[1])))

    def replay(witness: Witness) -> bool:
        stream = "stream" if "stream" in witness.columns.names else None
        if schema is not None:
            stream = schema.stream
        events = Stream.from_dicts(witness.events, type="type" if schema is None else schema.type, stream=stream)
        has = [
            (witness.detected_at, witness.complex_event) in reported_matches(automaton, events)
            if automaton.model is Model.CEA
            else witness.complex_event in matches(automaton, events)
            for automaton in (first, second)
        ]
        return has == [witness.side == 0, witness.side == 1]

    roots = [t.condition for automaton in (first, second) for t in automaton.transitions if t.condition is not None]
    engine = to_engine(first), to_engine(second)
    return compare_transducers(*engine, roots, schema=schema, budget=Budget(steps), replay=replay)
