"""The smallest deterministic automaton, over minterms (required by 003 §6).

Without registers this is Moore's refinement for symbolic automata: states are distinguished by what follows on each
minterm of all conditions. With registers, states are merged if they continue in the same way with the same events in
the same registers. A smaller automaton may then use its registers differently; for arbitrary conditions no method is
known, as there are no canonical register automata for them. An automaton that is not deterministic has no unique
smallest one, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cerflow.language.automaton import Model, State, sorted_states
from cerflow.language.condition import And, Condition, Constant, Not, Or
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.conditions.guards import Satisfied
from cerflow.theory.deciding.witnesses import Budget
from cerflow.theory.papers.constructions.determinize import construct_minterms, is_deterministic, is_io_deterministic
from cerflow.theory.papers.constructions.normal_forms import steps_allowed, without_idle_writes
from cerflow.theory.papers.model.automaton import Automaton, TransitionLike
from cerflow.theory.papers.model.conditions import not_satisfied
from cerflow.theory.papers.model.faults import NotDeterministicError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for

#: Atoms, and whether they hold.
_Case = tuple[tuple[Condition, bool], ...]
#: The effect of an event: the class of the next state, the output, the registers written.
_Behaviour = tuple[int, frozenset[str], frozenset[str]]


@defined_for(CEA, UCEA, SRT, RMA)
def minimize(automaton: AnyA, *, most: int | None = None) -> AnyA:
    """The deterministic transducer, or the I/O-deterministic automaton, with the same matches and the fewest states.

    Only states on a path to a final one count, so there is no sink. The result is smallest among automata that read
    the same conditions into the same registers: registers are not exchanged, and contradictions between conditions
    count as far as `construct_minterms` finds them. Raises `NotDeterministicError` unless the automaton is certain to
    be deterministic, `EpsilonFreeError` for ε-transitions, and `UnsupportedQueryError` if more than ``most`` minterms
    would have to be tried.
    """
    automaton.refuse_epsilon()
    if automaton.model.anywhere:
        if not is_deterministic(automaton):
            raise NotDeterministicError(
                "only a deterministic automaton can be minimised; determinise it for a window first"
            )
    elif not is_io_deterministic(automaton):
        raise NotDeterministicError("only an I/O-deterministic automaton can be minimised; see io_determinize")
    if automaton.model is Model.CEA:
        # States record whether the last event was marked, as final ones must.
        automaton = automaton.tracked(False, lambda _, t: [(bool(t.output), t.effect)], bool)
    needed = without_idle_writes(automaton.trimmed())
    classes, successors = _merged(needed, steps_allowed(most))
    return needed.made(
        (needed.transition.of(source, target, condition, *rest) for source, condition, (target, *rest) in successors),
        starts=(classes[q] for q in needed.starts),
        finals=(classes[q] for q in needed.finals),
        states=classes.values(),
    ).renumbered()


def _merged(
    automaton: Automaton, budget: Budget
) -> tuple[Mapping[State, int], list[tuple[int, Condition, _Behaviour]]]:
    """The coarsest classes whose states end and continue in the same way, on every minterm of all conditions.

    With them come the continuations from each class.
    """
    atoms: dict[Condition, bool] = {}
    for t in automaton.transitions:
        _allows(t.guard, lambda atom: atoms.setdefault(atom, True))
    basis = list(atoms)
    minterms = [frozenset(minterm.positive) for minterm in construct_minterms(basis, budget=budget)]
    rows = {
        q: [[t for t in automaton.leaving(q) if _allows(t.guard, minterm.__contains__)] for minterm in minterms]
        for q in sorted_states(automaton.states)
    }
    classes = {q: int(q in automaton.finals) for q in rows}
    while True:
        signatures = {
            q: (classes[q], *(frozenset(_behaviour(t, classes) for t in taken) for taken in row))
            for q, row in rows.items()
        }
        numbers = {signature: k for k, signature in enumerate(dict.fromkeys(signatures.values()))}
        if len(numbers) == len(set(classes.values())):
            break
        classes = {q: numbers[signature] for q, signature in signatures.items()}
    first = {k: q for q, k in reversed(classes.items())}
    successors: list[tuple[int, Condition, _Behaviour]] = []
    for k, state in sorted(first.items()):
        for behaviour in dict.fromkeys(_behaviour(t, classes) for t in automaton.leaving(state)):
            does = [any(_behaviour(t, classes) == behaviour for t in taken) for taken in rows[state]]
            for case in _cases(list(zip(minterms, does)), basis):
                parts = [atom if truth else not_satisfied(atom) for atom, truth in case]
                successors.append((k, conjunction(parts), behaviour))
    return classes, successors


def _behaviour(t: TransitionLike, classes: Mapping[State, int]) -> _Behaviour:
    return classes[t.target], t.output, t.writes


def _allows(condition: Condition, holds: Callable[[Condition], bool]) -> bool:
    """Whether a condition holds; asks ``holds`` of every atom that it combines with two truth values, in order."""
    match condition:
        case And():
            return _allows(condition.left, holds) & _allows(condition.right, holds)
        case Or():
            return _allows(condition.left, holds) | _allows(condition.right, holds)
        case Satisfied(inner):
            return _allows(inner, holds)
        case Not(Satisfied(inner)):
            return not _allows(inner, holds)
        case Constant(value):
            return value
    return holds(condition)


def _cases(choices: list[tuple[frozenset[Condition], bool]], atoms: list[Condition]) -> list[_Case]:
    """The chosen minterms, as mutually exclusive cases with no more atoms than needed."""
    if all(chosen for _, chosen in choices):
        return [()]
    if not any(chosen for _, chosen in choices):
        return []
    atom, *others = atoms
    halves = [[choice for choice in choices if (atom in choice[0]) is truth] for truth in (True, False)]
    if not all(halves):
        return _cases(choices, others)
    one, other = (_cases(half, others) for half in halves)
    if one == other:
        return one
    return [((atom, truth), *case) for truth, cases in ((True, one), (False, other)) for case in cases]
