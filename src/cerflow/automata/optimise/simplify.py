"""Make a transducer smaller without changing its matches.

Impossible transitions, useless states and registers are removed, and equivalent states are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from cerflow.automata.model.fragment import Fragment, explored, waiting_states
from cerflow.automata.model.transducer import Register, Transducer, Transition, Write, registers_used
from cerflow.base.graphs import gathered, grouped, reached_along
from cerflow.language.condition import Condition, Not
from cerflow.language.formula import Window
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.conditions.guards import Satisfied, is_local, with_registers


def simplify(
    fragment: Fragment, registers: Sequence[Register], window: Window | None, mentioned: frozenset[str]
) -> Transducer:
    """The finished transducer of a fragment: trimmed, its registers reduced to live ones, bisimilar states merged."""
    divided = (part for t in fragment.transitions for part in _divided(t))
    possible = [t for t in dict.fromkeys(divided) if not contradicts(conjuncts(t.test))]
    useful = _beginning_together(fragment.with_transitions(possible)).trimmed()
    if not useful.initial:
        return Transducer(1, frozenset({0}), frozenset(), (), (), window, mentioned)
    merged = _merge(_share_registers(_drop_dead_writes(useful.finished(registers, window, mentioned))))
    used = sorted(registers_used(merged.transitions))
    renumbered = _renumbered(merged, {old: new for new, old in enumerate(used)})
    return replace(renumbered, registers=tuple(merged.registers[r] for r in used))


def with_other_transitions(
    transducer: Transducer, transitions: Iterable[Transition], initial: Iterable[int] | None = None
) -> Transducer:
    """The transducer with other transitions, and perhaps other initial states, made as small as possible."""
    fragment = Fragment.of(transducer, transitions)
    fragment.initial = fragment.initial if initial is None else set(initial)
    return simplify(fragment, transducer.registers, transducer.window, transducer.mentioned)


def _beginning_together(fragment: Fragment) -> Fragment:
    """Merge initial states in which runs only wait, for the same events: an OR of many operands begins in one state."""
    first: dict[frozenset[Condition], int] = {}
    same = {q: first.setdefault(tests, q) for q, tests in waiting_states(fragment).items()}
    place = [same.get(q, q) for q in range(fragment.states)]
    moved = dict.fromkeys(t.moved(place[t.source], place[t.target]) for t in fragment.transitions)
    return Fragment(fragment.states, {place[q] for q in fragment.initial}, fragment.final, list(moved))


def _divided(t: Transition) -> list[Transition]:
    """A step over events that do not satisfy a condition, divided so that those of another kind are no longer asked.

    What the event alone says of the condition becomes the test of one part, the rest the atom of the other.
    """
    match t.atoms:
        case (Not(Satisfied(condition)),) if not t.labels and not t.writes:
            local = [part for part in conjuncts(condition) if is_local(part)]
            rest = [part for part in conjuncts(condition) if not is_local(part)]
            if local and rest:
                others = conjunction([*conjuncts(t.test), Not(Satisfied(conjunction(local)))])
                same = conjunction([*conjuncts(t.test), *local])
                failing = Not(Satisfied(conjunction(rest)))
                return [replace(t, test=others, atoms=()), replace(t, test=same, atoms=(failing,))]
    return [t]


def _drop_dead_writes(transducer: Transducer) -> Transducer:
    live = transducer.live()
    changed = []
    for t in transducer.transitions:
        needed = set(live[t.target])
        kept: list[Write] = []
        for write in reversed(t.writes):
            if write.register in needed:
                kept.append(write)
                if write.fresh:
                    needed.discard(write.register)
        changed.append(replace(t, writes=tuple(reversed(kept))))
    return replace(transducer, transitions=tuple(dict.fromkeys(changed)))


def _merge(transducer: Transducer) -> Transducer:
    """Merge bisimilar states: the coarsest partition in which equal states have equal transitions into classes."""
    classes = _bisimulation(transducer)
    # Numbered by the fewest events after which a run can be there, so that a sequence looks like one.
    order = reached_along(((t.source, t.target) for t in transducer.transitions), sorted(transducer.initial))
    numbers = {c: k for k, c in enumerate(dict.fromkeys(classes[q] for q in order))}
    merged = [numbers[c] for c in classes]
    transitions = dict.fromkeys(t.moved(merged[t.source], merged[t.target]) for t in transducer.transitions)
    return replace(
        transducer,
        states=len(numbers),
        initial=frozenset(merged[q] for q in transducer.initial),
        final=frozenset(merged[q] for q in transducer.final),
        transitions=tuple(sorted(transitions, key=lambda t: (t.source, t.target))),
    )


def _bisimulation(transducer: Transducer) -> list[int]:
    """The class of each state. Only states whose successors changed their class are visited again."""
    # A number for the effect of a transition, so that trees are compared only once.
    numbers: dict[object, int] = {}
    moves = transducer.transitions
    actions = [numbers.setdefault((t.test, t.atoms, t.labels, t.writes), len(numbers)) for t in moves]
    leaving = grouped(transducer.states, ((t.source, (action, t.target)) for t, action in zip(moves, actions)))
    entering = grouped(transducer.states, ((t.target, t.source) for t in moves))
    classes = [(q in transducer.final) + 2 * (q in transducer.initial) for q in range(transducer.states)]
    members = {c: set(states) for c, states in gathered((c, q) for q, c in enumerate(classes)).items()}
    fresh = 4
    changed = set(range(transducer.states))
    while changed:
        touched = gathered((classes[q], q) for q in changed)
        moved: list[int] = []
        splits: list[tuple[int, list[list[int]]]] = []
        for c, states in touched.items():
            # The others of the class still agree with one another; one of them represents all.
            others = members[c].difference(states) if len(states) < len(members[c]) else set()
            groups = gathered((frozenset((a, classes[p]) for a, p in leaving[q]), q) for q in states)
            if others:
                one = next(iter(others))
                groups.pop(frozenset((a, classes[p]) for a, p in leaving[one]), None)
                splits.append((c, list(groups.values())))
            elif len(groups) > 1:
                # The largest group keeps the class.
                splits.append((c, sorted(groups.values(), key=len)[:-1]))
        for c, parts in splits:
            for part in parts:
                members[c].difference_update(part)
                members[fresh] = set(part)
                for q in part:
                    classes[q] = fresh
                moved.extend(part)
                fresh += 1
        changed = {p for q in moved for p in entering[q]}
    return classes


def _share_registers(transducer: Transducer) -> Transducer:
    """Use one register for all that are always written together with the same values."""
    transitions = enumerate(transducer.transitions)
    written = gathered((w.register, (k, w.row, w.fresh, w.where)) for k, t in transitions for w in t.writes)
    first: dict[object, int] = {}
    same: dict[int, int] = {}
    for register, writes in sorted(written.items()):
        kept = transducer.registers[register]
        other = first.setdefault((kept.keeps, kept.window, kept.covering, tuple(writes)), register)
        if other != register:
            same[register] = other
    return _renumbered(transducer, same) if same else transducer


def _renumbered(transducer: Transducer, numbers: dict[int, int]) -> Transducer:
    """The transducer with other numbers for some registers; the list of registers is unchanged."""
    changed: list[Transition] = []
    # Many transitions have the same trees.
    renumbered = cache(lambda tree: with_registers(tree, numbers))
    for t in transducer.transitions:
        moved = t.with_trees(renumbered)
        writes = (replace(w, register=numbers.get(w.register, w.register)) for w in moved.writes)
        changed.append(replace(moved, writes=tuple(dict.fromkeys(writes))) if moved.writes else moved)
    return replace(transducer, transitions=tuple(changed))


def merge_transitions(operand: Fragment) -> Fragment:
    """The same runs, without two transitions from one state that differ only in their target.

    Returns the operand itself if there would be more than twice as many sets as states.
    """
    leaving = operand.leaving()

    def following(states: frozenset[int]) -> Iterable[tuple[frozenset[int], Transition]]:
        targets = gathered((t.moved(0, 0), t.target) for state in sorted(states) for t in leaving[state])
        return ((frozenset(together), t) for t, together in targets.items())

    def numbered(_: frozenset[int], result: Fragment) -> int:
        if result.states >= max(1, 2 * operand.states):
            raise OverflowError
        return result.add_state()

    try:
        return explored([frozenset(operand.initial)], following, lambda q: not operand.final.isdisjoint(q), numbered)
    except OverflowError:
        return operand
