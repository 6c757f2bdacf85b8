"""Questions about transducers with registers, decided by Z3 (extra ``cerflow[decide]``).

A stream that proves a match or a difference is searched, the shortest first, and replayed. There is none if the search
ends, or by a proof for all lengths. Whatever is neither found nor proved is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock

from cerflow.automata.model.transducer import Transducer
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.deciding.event_spaces import EventSpace, expressions_of
from cerflow.theory.deciding.solver.horn_clauses import contains_provably, never_matches_provably
from cerflow.theory.deciding.solver.symbolic_conditions import SymbolicConditions
from cerflow.theory.deciding.solver.symbolic_runs import (
    Runs,
    Solver,
    SymbolicWitness,
    differences,
    shortest_runs,
)
from cerflow.theory.deciding.solver.symbolic_values import SymbolicValues
from cerflow.theory.deciding.witnesses import Answer, Replay, witness_of

#: Terms of Z3 belong to one thread at a time.
_LOCK = RLock()


def match_with_registers(
    transducer: Transducer, event_spaces: Sequence[EventSpace], replay: Replay, budget: Budget
) -> Answer:
    """Whether a transducer has a match in a stream of one of the event spaces."""

    def answer(event_space: EventSpace) -> Answer:
        conditions = SymbolicConditions(SymbolicValues(event_space, expressions_of(transducer), transducer.mentioned))
        runs, solver = Runs(transducer, conditions), Solver(conditions.values, budget)
        return _answer(shortest_runs(runs, solver), solver, conditions, lambda: never_matches_provably(runs), replay)

    return _joined(event_spaces, answer)


def difference_with_registers(
    first: Transducer,
    second: Transducer,
    one_sided: bool,
    event_spaces: Sequence[EventSpace],
    replay: Replay,
    budget: Budget,
) -> Answer:
    """Whether one transducer has a match that the other lacks (``one_sided``: that the second lacks)."""

    def answer(event_space: EventSpace) -> Answer:
        roots = [*expressions_of(first), *expressions_of(second)]
        conditions = SymbolicConditions(SymbolicValues(event_space, roots, first.mentioned | second.mentioned))
        both, solver = [Runs(first, conditions), Runs(second, conditions)], Solver(conditions.values, budget)

        def proved() -> bool:
            return bool(contains_provably(*both) and (one_sided or contains_provably(*both[::-1])))

        return _answer(differences(both, one_sided, solver), solver, conditions, proved, replay)

    return Answer(False) if first == second else _joined(event_spaces, answer)


def _joined(event_spaces: Sequence[EventSpace], answer: Callable[[EventSpace], Answer]) -> Answer:
    """A shortest witness of all event spaces; there is none if there is none in any of them."""
    with _LOCK:
        answers = [answer(event_space) for event_space in event_spaces]
    found = [a for a in answers if a.witness is not None]
    if found:
        return min(found, key=lambda a: a.witness.detected_at if a.witness is not None else 0)
    return next((a for a in answers if a.exists is None), Answer(False))


def _answer(
    search: Iterator[SymbolicWitness | None],
    solver: Solver,
    conditions: SymbolicConditions,
    proved: Callable[[], bool | None],
    replay: Replay,
) -> Answer:
    doubts: dict[str, None] = {}
    length, refuted, tried = 0, False, False
    try:
        for found in search:
            if found is None:
                length += 1
                if solver.asked > limits.SOLVER_FIRST_QUESTIONS and not tried:
                    tried = True
                    if proved():
                        return Answer(False)
                continue
            witness = witness_of(solver.examples(found), found.labels, found.side, conditions.values.event_space)
            if replay(witness):
                return Answer(True, witness)
            refuted = True
            doubts.update(dict.fromkeys(conditions.doubts(found.formula)))
    except UnsupportedQueryError:
        if not tried and proved():
            return Answer(False)
        if not doubts:
            reason = f"no stream of up to {length} events proves it, and for longer ones nothing is proved"
            return Answer(None, reason=reason)
    if doubts:
        return Answer(None, reason=f"it is not known which events satisfy {', '.join(doubts)}")
    return (
        Answer(None, reason="the stream that was found does not have the match by definition")
        if refuted
        else Answer(False)
    )
