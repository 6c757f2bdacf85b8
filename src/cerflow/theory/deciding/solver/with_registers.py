"""Questions about transducers with registers, decided by Z3 (extra ``cerflow[decide]``).

A stream that proves a match or a difference is searched, the shortest first, and replayed. There is none if the search
ends, or by a proof for all lengths. Whatever is neither found nor proved is not known.

A proof is reachability as Horn clauses, by Z3's Spacer: a clause says which values registers may hold in a state, and
a proof is a set of invariants. For comparisons in a linear order there always is one; where registers count or add up,
Spacer may give up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from threading import RLock
from typing import Any

import z3

from cerflow.automata.model.transducer import Accumulation, Transducer
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import reached
from cerflow.theory.deciding.solver import symbolic_runs as s
from cerflow.theory.deciding.solver.symbolic_conditions import RegisterTerms, SymbolicConditions
from cerflow.theory.deciding.solver.symbolic_values import (
    NULL,
    SymbolicEvent,
    SymbolicValues,
    Term,
    ValueSort,
    variables_of,
)
from cerflow.theory.deciding.witnesses import Answer, Budget, EventSpace, Replay, expressions_of, witness_of


class _Templates:
    """The configurations of one transducer with variables in the registers."""

    def __init__(self, runs: s.Runs, name: str, event: SymbolicEvent) -> None:
        self.runs = runs
        self._name = name
        #: The sort of each field of each register: null if nothing is written, None if not all its values are known.
        self._sorts: dict[tuple[int, int], ValueSort | None] = {
            (number, k): ValueSort.NULL
            for number, register in enumerate(runs.transducer.registers)
            for k in range(register.fields)
        }
        while self._learn(event):
            pass

    def _learn(self, event: SymbolicEvent) -> bool:
        """Learn the sorts of fields from what is written to them, given those known; whether there are new ones."""
        before = dict(self._sorts)
        for state in range(self.runs.transducer.states):
            for _, _, after in self.runs.moves(self.configuration(state), event):
                for number, content in enumerate(after.memory):
                    for k, term in enumerate(content.fields):
                        sort = None if term is None else term.sort
                        former = self._sorts[number, k]
                        if former is ValueSort.NULL:
                            self._sorts[number, k] = sort
                        elif sort not in (former, ValueSort.NULL):
                            self._sorts[number, k] = None
        return self._sorts != before

    def configuration(self, state: int) -> s.SymbolicConfiguration:
        """A state with any contents of the registers that matter there."""
        memory = list(self.runs.empty)
        for number in self.runs.live[state]:
            register = self.runs.transducer.registers[number]
            if register.keeps is not Accumulation.SET:
                fields = tuple(self._field(number, k) for k in range(register.fields))
                memory[number] = RegisterTerms(z3.Bool(f"{self._name}{number} is empty"), fields)
        return s.SymbolicConfiguration(state, tuple(memory))

    def _field(self, number: int, k: int) -> Term | None:
        sort, name = self._sorts[number, k], f"{self._name}{number}.{k}"
        if sort is None or sort is ValueSort.NULL:
            return None if sort is None else NULL
        return Term(sort, z3.Bool(f"{name} is null"), z3.Int(name))

    def arguments(self, configuration: s.SymbolicConfiguration) -> list[Any]:
        """What is known of the registers that matter in a state."""
        found: list[Any] = []
        for number in sorted(self.runs.live[configuration.state]):
            content = configuration.memory[number]
            found.append(content.empty)
            for k, term in enumerate(content.fields):
                if term is not None and self._sorts[number, k] is not None:
                    found += [term.null, term.number]
        return found

    def one_run(self, event: SymbolicEvent) -> bool:
        """Whether no two transitions with the same labels can be taken at once."""
        if len(self.runs.transducer.initial) != 1:
            return False
        for state in range(self.runs.transducer.states):
            moves = self.runs.moves(self.configuration(state), event)
            for (labels, guard, one), (others, condition, other) in combinations(moves, 2):
                if labels != others or one == other:
                    continue
                solver = z3.Solver()
                solver.set("rlimit", limits.SOLVER_RESOURCES)
                if solver.check(event.domain, guard, condition) != z3.unsat:
                    return False
        return True


class _Clauses:
    """Clauses about relations of configurations."""

    def __init__(self) -> None:
        self._engine = z3.Fixedpoint()
        self._engine.set(engine="spacer", rlimit=limits.PROOF_RESOURCES)
        self._relations: dict[object, Any] = {}
        self.goal = self.relation("goal", [])

    def relation(self, key: object, arguments: Sequence[Any]) -> Any:
        """A relation of its own for every key, applied to arguments."""
        # Without any argument it would be taken for a variable.
        arguments = arguments or [z3.IntVal(0)]
        if key not in self._relations:
            made = z3.Function(f"reached {len(self._relations)}", *(a.sort() for a in arguments), z3.BoolSort())
            self._engine.register_relation(made)
            self._relations[key] = made
        return self._relations[key](*arguments)

    def add(self, head: Any, *body: Any) -> None:
        """A clause for all values of its variables."""
        clause = z3.Implies(z3.And(*body), head)
        variables = variables_of(clause)
        self._engine.add_rule(z3.ForAll(variables, clause) if variables else clause)

    def unreachable(self) -> bool:
        """Whether it is proved that the goal is unreachable; not if Spacer gives up."""
        try:
            return bool(self._engine.query(self.goal) == z3.unsat)
        except z3.Z3Exception:
            return False


#: A state of one transducer, and one of another beside it.
_States = tuple[int, int | None]


def _proved(both: Sequence[s.Runs]) -> bool:
    """Whether it is proved that no run of the first detects, or that every match of the first is one of the second.

    That is proved only of a second that has one run at most for the same labels.
    """
    values = both[0].conditions.values
    if values.floating:
        return False
    event = values.event(z3.Int("position"), "any")
    first, *rest = (_Templates(runs, name, event) for runs, name in zip(both, ("own ", "other ")))
    if not all(second.one_run(event) for second in rest):
        return False
    clauses = _Clauses()
    timed = any(runs.measures for runs in both)

    def relation(one: s.SymbolicConfiguration, other: s.SymbolicConfiguration | None, position: Any) -> Any:
        arguments = [*([position] if timed else []), *first.arguments(one)]
        if other is not None:
            arguments += rest[0].arguments(other)
        return clauses.relation(_states(one, other), arguments)

    def following(states: _States) -> Iterator[_States]:
        one = first.configuration(states[0])
        other = None if states[1] is None else rest[0].configuration(states[1])
        before = relation(one, other, event.position)
        if first.runs.detects(one) and (other is None or not rest[0].runs.detects(other)):
            clauses.add(clauses.goal, before)
        replies = [] if other is None else list(rest[0].runs.moves(other, event))
        for labels, guard, after in first.runs.moves(one, event):
            answers: list[tuple[Any, s.SymbolicConfiguration | None]] = [
                (condition, target) for own, condition, target in replies if own == labels
            ]
            neither = z3.And(*(z3.Not(condition) for condition, _ in answers))
            for condition, target in (*answers, (neither, None)):
                clauses.add(relation(after, target, event.position + 1), before, event.domain, guard, condition)
                yield _states(after, target)

    begin = list(product(both[0].begin(), both[1].begin() if rest else [None]))
    for one, other in begin:
        clauses.add(relation(one, other, z3.IntVal(0)), z3.BoolVal(True))
    reached([_states(one, other) for one, other in begin], following)
    return clauses.unreachable()


def _states(one: s.SymbolicConfiguration, other: s.SymbolicConfiguration | None) -> _States:
    return one.state, None if other is None else other.state


#: Terms of Z3 belong to one thread at a time.
_LOCK = RLock()


def decided_with_registers(
    transducers: Sequence[Transducer],
    one_sided: bool,
    event_spaces: Sequence[EventSpace],
    replay: Replay,
    budget: Budget,
) -> Answer:
    """Whether one of two transducers has a match that the other lacks (``one_sided``: that the second lacks).

    Of a single transducer: whether it has a match.
    """
    if len(transducers) == 2 and transducers[0] == transducers[1]:
        return Answer(False)
    with _LOCK:
        answers = [_answer(transducers, one_sided, event_space, replay, budget) for event_space in event_spaces]
    # A shortest witness of all event spaces; there is none if there is none in any of them.
    answers.sort(key=lambda answer: math.inf if answer.witness is None else answer.witness.detected_at)
    return next(answer for exists in (True, None, False) for answer in answers if answer.exists is exists)


def _answer(
    transducers: Sequence[Transducer], one_sided: bool, event_space: EventSpace, replay: Replay, budget: Budget
) -> Answer:
    mentioned = frozenset[str]().union(*(t.mentioned for t in transducers))
    roots = [root for t in transducers for root in expressions_of(t)]
    conditions = SymbolicConditions(SymbolicValues(event_space, roots, mentioned))
    solver, runs = s.Solver(conditions.values, budget), [s.Runs(t, conditions) for t in transducers]
    single = len(runs) == 1
    search = s.shortest_runs(runs[0], solver) if single else s.differences(runs, one_sided, solver)

    def proved() -> bool:
        return _proved(runs) and (single or one_sided or _proved(runs[::-1]))

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
            witness = witness_of(solver.examples(found), found.labels, found.side, event_space)
            if replay(witness):
                return Answer(True, witness)
            refuted = True
            doubts.update(dict.fromkeys(conditions.doubts(found.formula)))
    except UnsupportedQueryError:
        if not tried and proved():
            return Answer(False)
        if not doubts:
            return Answer(
                None, reason=f"no stream of up to {length} events proves it, and for longer ones nothing is proved"
            )
    if doubts:
        return Answer(None, reason=f"it is not known which events satisfy {', '.join(doubts)}")
    if refuted:
        return Answer(None, reason="the stream that was found does not have the match by definition")
    return Answer(False)
