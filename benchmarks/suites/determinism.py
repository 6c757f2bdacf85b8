"""Deterministic transducers with registers (§6 of the paper on them), beside the one that they are made of.

One pattern of three ticks in windows of a few events: by the transducer of its expression; unrolled and determinised
for the window, which has one run from each event; and as staggered copies, which have one run on the whole stream.
All only detect, as a deterministic transducer does not tell which events a match has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cerflow
from benchmarks.cases import Case, Question, Scale
from cerflow import automata

__all__ = ["COPIES", "DETERMINISED", "WINDOWS", "cases"]

EXPRESSION = (
    "any([type = 'SELL' AND name = 'INTC'] INTO r, [type = 'BUY' AND name = 'RIMM'], "
    "[type = 'BUY' AND name = 'QQQ' AND price > r.price])"
)
WINDOWS = (3, 4, 5, 6)
#: The widest window for staggered copies: for each event more there are five times as many states.
_WIDEST = 4
#: What the names of cases end with.
DETERMINISED, COPIES = ", determinised", ", staggered copies"


def cases(scale: Scale) -> list[Case]:
    """The cases, three for each window; each has as many detections as the two others."""
    free = automata.eliminate_epsilon(automata.compile_sremo(EXPRESSION))
    return [
        Case(
            "srt",
            f"three ticks, {window} events{form}",
            str(query),
            scale.stocks,
            ("type", "name", "price"),
            ("count",),
            layouts=("encoded",),
            question=Question("three ticks", f"{window} events"),
        )
        for window in WINDOWS
        for form, query in _forms(free, window)
    ]


def _forms(free: automata.SymbolicRegisterTransducer, window: int) -> Iterator[tuple[str, cerflow.Query]]:
    yield "", cerflow.Query.from_automaton(free, detect=True, within=f"{window} EVENTS")
    deterministic = automata.determinize_windowed(free, window)
    yield DETERMINISED, cerflow.Query.from_automaton(deterministic, detect=True)
    if window <= _WIDEST:
        tree = automata.unroll(automata.to_single_register(free), window).transducer
        copies = cerflow.Query.from_automaton(automata.staggered(tree, window), detect=True)
        # The copies begin at every event, so one run from the first event is enough.
        yield COPIES, cerflow.Query(replace(copies.tree, formula=replace(copies.tree.formula, anywhere=False)))
