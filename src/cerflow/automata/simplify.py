"""Make a transducer smaller without changing its matches: impossible transitions, useless states and registers, and
states that no continuation can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cerflow.automata.fragment import Fragment
from cerflow.automata.guards import Stored, conjuncts
from cerflow.automata.satisfiable import contradicts
from cerflow.automata.transducer import Register, Transducer, Transition, Write
from cerflow.language.condition import Condition, Expression
from cerflow.language.formula import Window
from cerflow.language.node import Node, transform

__all__ = ["simplify"]


def simplify(
    fragment: Fragment, registers: Sequence[Register], window: Window | None, mentioned: frozenset[str]
) -> Transducer:
    """The finished transducer of a fragment: trimmed, its registers reduced to live ones, bisimilar states merged."""
    transitions = [t for t in dict.fromkeys(fragment.transitions) if not _impossible(t)]
    states, transitions = _trim(fragment, transitions)
    initial = frozenset(states[q] for q in fragment.initial if q in states)
    final = frozenset(states[q] for q in fragment.final if q in states)
    if not initial:
        return Transducer(1, frozenset({0}), frozenset(), (), (), window, mentioned)
    current = _drop_dead_writes(
        Transducer(len(states), initial, final, tuple(transitions), tuple(registers), window, mentioned)
    )
    return _use_few_registers(_merge(current))


def _impossible(t: Transition) -> bool:
    return contradicts(conjuncts(t.test))


def _trim(fragment: Fragment, transitions: list[Transition]) -> tuple[dict[int, int], list[Transition]]:
    """Keep the states on some way from an initial to a final one; returns their new numbers."""
    forward: dict[int, list[int]] = {}
    backward: dict[int, list[int]] = {}
    for t in transitions:
        forward.setdefault(t.source, []).append(t.target)
        backward.setdefault(t.target, []).append(t.source)
    useful = _reach(fragment.initial, forward) & _reach(fragment.final, backward)
    numbers = {q: k for k, q in enumerate(sorted(useful))}
    kept = [
        replace(t, source=numbers[t.source], target=numbers[t.target])
        for t in transitions
        if t.source in useful and t.target in useful
    ]
    return numbers, kept


def _reach(start: set[int], edges: dict[int, list[int]]) -> set[int]:
    seen = set(start)
    pending = list(start)
    while pending:
        for q in edges.get(pending.pop(), ()):
            if q not in seen:
                seen.add(q)
                pending.append(q)
    return seen


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
    classes = [(q in transducer.final) + 2 * (q in transducer.initial) for q in range(transducer.states)]
    leaving: list[list[Transition]] = [[] for _ in range(transducer.states)]
    for t in transducer.transitions:
        leaving[t.source].append(t)
    # What a transition does, as a number: comparing trees once is enough.
    actions: dict[tuple[object, ...], int] = {}
    action = {
        t: actions.setdefault((t.test, t.atoms, t.labels, t.writes), len(actions)) for t in transducer.transitions
    }
    count = len(set(classes))
    while True:
        numbers: dict[tuple[int, frozenset[tuple[int, int]]], int] = {}
        refined = [
            numbers.setdefault(
                (classes[q], frozenset((action[t], classes[t.target]) for t in leaving[q])), len(numbers)
            )
            for q in range(transducer.states)
        ]
        classes = refined
        if len(numbers) == count:
            break
        count = len(numbers)
    merged = dict.fromkeys(
        replace(t, source=classes[t.source], target=classes[t.target]) for t in transducer.transitions
    )
    return replace(
        transducer,
        states=count,
        initial=frozenset(classes[q] for q in transducer.initial),
        final=frozenset(classes[q] for q in transducer.final),
        transitions=tuple(sorted(merged, key=lambda t: (t.source, t.target))),
    )


def _use_few_registers(transducer: Transducer) -> Transducer:
    """Renumber the registers that are still used."""
    used = sorted({r for t in transducer.transitions for r in (*t.reads(), *(w.register for w in t.writes))})
    numbers = {old: new for new, old in enumerate(used)}

    def renumber(current: Node) -> Node:
        if isinstance(current, Stored):
            return Stored(numbers[current.register], current.field)
        return current

    def atom(condition: Condition) -> Condition:
        return transform(condition, renumber)  # type: ignore[return-value]

    def value(expression: Expression) -> Expression:
        return transform(expression, renumber)  # type: ignore[return-value]

    changed = tuple(
        replace(
            t,
            atoms=tuple(atom(a) for a in t.atoms),
            writes=tuple(Write(numbers[w.register], tuple(value(e) for e in w.row), w.fresh) for w in t.writes),
        )
        for t in transducer.transitions
    )
    return replace(transducer, transitions=changed, registers=tuple(transducer.registers[r] for r in used))
