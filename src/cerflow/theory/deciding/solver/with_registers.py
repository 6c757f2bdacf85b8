"""Questions about transducers with registers, decided by Z3 (extra ``cerflow[decide]``).

A stream that proves a match or a difference is searched, the shortest first, and replayed. There is none if the search
ends, or by a proof for all lengths. Whatever is neither found nor proved is not known.

A proof is reachability as Horn clauses, by Z3's Spacer: a clause says which values registers may hold in a state, and
a proof is a set of invariants. For comparisons in a linear order there always is one; where registers count or add up,
Spacer may give up.
"""

from __future__ import annotations

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
from cerflow.theory.deciding.solver.symbolic_conditions import RegisterTerms, SymbolicConditions, template
from cerflow.theory.deciding.solver.symbolic_values import SymbolicEvent, SymbolicValues, ValueSort, variables_of
from cerflow.theory.deciding.witnesses import Answer, Budget, EventSpace, Replay, expressions_of, witness_of

#: A state, and whether the complex event has begun; of one transducer, and of another one beside it.
_Shape = tuple[int, bool]
_Shapes = tuple[_Shape, _Shape | None]


class _Templates:
    """The configurations of one transducer with variables in the registers."""

    def __init__(self, runs: s.Runs, name: str, event: SymbolicEvent) -> None:
        self.runs = runs
        self._name = name
        #: The sort of each field of each register: none yet, or None if it holds values that are not known.
        self._sorts: dict[tuple[int, int], ValueSort | None] = {}
        while self._learn(event):
            pass

    def _learn(self, event: SymbolicEvent) -> bool:
        """Learn the sorts of fields from what is written to them, given those known; whether there are new ones."""
        before = dict(self._sorts)
        for state in range(self.runs.transducer.states):
            for _, _, after in self.runs.moves(self.configuration(state, False), event):
                for number, content in enumerate(after.memory):
                    for k, term in enumerate(content.fields or ()):
                        sort = term.sort if term.known else None
                        former = self._sorts.get((number, k), ValueSort.NULL)
                        if sort is not former and sort is not ValueSort.NULL and former is not None:
                            self._sorts[number, k] = sort if former is ValueSort.NULL else None
        return self._sorts != before

    def configuration(self, state: int, begun: bool) -> s.SymbolicConfiguration:
        """A state with any contents of the registers that matter there."""
        memory: list[RegisterTerms] = []
        for number, register in enumerate(self.runs.transducer.registers):
            if number not in self.runs.live[state] or register.keeps is Accumulation.SET:
                memory.append(self.runs.empty[number])
                continue
            name = f"{self._name}{number}"
            fields = (
                template(self._sorts.get((number, k), ValueSort.NULL), f"{name}.{k}") for k in range(register.fields)
            )
            memory.append(RegisterTerms(z3.Bool(f"{name} is empty"), tuple(fields)))
        return s.SymbolicConfiguration(state, tuple(memory), z3.Int(f"{self._name} begun") if begun else None)


class _Clauses:
    """Clauses about relations of configurations."""

    def __init__(self) -> None:
        self._engine = z3.Fixedpoint()
        self._engine.set(engine="spacer", rlimit=limits.PROOF_RESOURCES)
        self._relations: dict[tuple[object, ...], Any] = {}
        self.goal = self.relation(("goal",), [])

    def relation(self, key: tuple[object, ...], arguments: Sequence[Any]) -> Any:
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


def _one_run(templates: _Templates, event: SymbolicEvent) -> bool:
    """Whether no two transitions with the same labels can be taken at once."""
    runs = templates.runs
    if len(runs.transducer.initial) != 1:
        return False
    for state, begun in product(range(runs.transducer.states), (False, True)):
        moves = list(runs.moves(templates.configuration(state, begun), event))
        for (labels, guard, one), (others, condition, other) in combinations(moves, 2):
            if labels != others or one.key() == other.key():
                continue
            solver = z3.Solver()
            solver.set("rlimit", limits.SOLVER_RESOURCES)
            if solver.check(event.domain, guard, condition) != z3.unsat:
                return False
    return True


def _proved(both: Sequence[s.Runs]) -> bool:
    """Whether it is proved that no run of the first detects, or that every match of the first is one of the second.

    That is proved only of a second that has one run at most for the same labels.
    """
    first = both[0]
    values = first.conditions.values
    if values.floating:
        return False
    event = values.event(z3.Int("position"), "any")
    templates = [_Templates(runs, name, event) for runs, name in zip(both, ("own ", "other "))]
    if not all(_one_run(second, event) for second in templates[1:]):
        return False
    clauses = _Clauses()
    timed = any(runs.measures for runs in both)

    def relation(one: s.SymbolicConfiguration, other: s.SymbolicConfiguration | None, position: Any) -> Any:
        arguments = [*([position] if timed else []), *_arguments(first, one)]
        if other is not None:
            arguments += _arguments(both[1], other)
        return clauses.relation(_shapes(one, other), arguments)

    def following(shapes: _Shapes) -> Iterator[_Shapes]:
        one = templates[0].configuration(*shapes[0])
        other = None if shapes[1] is None else templates[1].configuration(*shapes[1])
        before = relation(one, other, event.position)
        if first.detects(one) and (other is None or not both[1].detects(other)):
            clauses.add(clauses.goal, before)
        replies = [] if other is None else list(both[1].moves(other, event))
        for labels, guard, after in first.moves(one, event):
            answers: list[tuple[Any, s.SymbolicConfiguration | None]] = [
                (condition, target) for own, condition, target in replies if own == labels
            ]
            neither = z3.And(*(z3.Not(condition) for condition, _ in answers))
            for condition, target in (*answers, (neither, None)):
                clauses.add(relation(after, target, event.position + 1), before, event.domain, guard, condition)
                yield _shapes(after, target)

    begin = list(product(first.begin(), both[1].begin() if len(both) > 1 else [None]))
    for one, other in begin:
        clauses.add(relation(one, other, z3.IntVal(0)), z3.BoolVal(True))
    reached([_shapes(one, other) for one, other in begin], following)
    return clauses.unreachable()


def _shapes(one: s.SymbolicConfiguration, other: s.SymbolicConfiguration | None) -> _Shapes:
    return one.shape, None if other is None else other.shape


def _arguments(runs: s.Runs, configuration: s.SymbolicConfiguration) -> list[Any]:
    """The contents of the registers that matter in a state, and where the complex event began."""
    found = [] if configuration.begun is None else [configuration.begun]
    for number in sorted(runs.live[configuration.state]):
        content = configuration.memory[number]
        found.append(content.empty)
        for term in content.fields or ():
            found += [term.null, term.number]
    return found


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
    # A shortest witness of all event spaces; there is none if there is none in any of them.
    with _LOCK:
        answers = [_answer(transducers, one_sided, event_space, replay, budget) for event_space in event_spaces]
    found = [a for a in answers if a.witness is not None]
    if found:
        return min(found, key=lambda a: a.witness.detected_at if a.witness is not None else 0)
    return next((a for a in answers if a.exists is None), Answer(False))


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
            said = f"no stream of up to {length} events proves it, and for longer ones nothing is proved"
            return Answer(None, reason=said)
    if doubts:
        return Answer(None, reason=f"it is not known which events satisfy {', '.join(doubts)}")
    if refuted:
        return Answer(None, reason="the stream that was found does not have the match by definition")
    return Answer(False)
