"""Whether two runs can give the same output, so that a match would be reported twice (cf. P1 §6), or one a part of the
output of the other."""

from __future__ import annotations

from dataclasses import replace

from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.transducer import HIDDEN_LABEL, Transducer, Transition, asks_all_rows
from cerflow.base import limits
from cerflow.language.condition import Condition
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjuncts


def ambiguous(transducer: Transducer) -> bool:
    """False only if on every stream every complex event is given by at most one run.

    The product of the transducer with itself is searched for two different runs with equal labels at every event that
    end together. Where they part, both have the same registers, so atoms may contradict each other there, unless they
    are about all rows of a collection. Later, atoms count as satisfiable.
    """
    known: bool | None = transducer.__dict__.get("_ambiguous")
    if known is None:
        known = transducer.__dict__["_ambiguous"] = _searched(transducer)
    return known


def _searched(transducer: Transducer) -> bool:
    leaving: list[dict[frozenset[str], list[Transition]]] = [{} for _ in range(transducer.states)]
    for t in transducer.transitions:
        leaving[t.source].setdefault(t.labels, []).append(t)
    compatible: dict[tuple[int, int, bool], bool] = {}
    tests = {t: conjuncts(t.test) for t in transducer.transitions}
    register = transducer.registers.__getitem__
    exclusive = {t: [c for c in t.atoms if not asks_all_rows(c, register)] for t in transducer.transitions}

    def together(a: Transition, b: Transition, differ: bool) -> bool:
        key = (id(a), id(b), differ)
        if key not in compatible:
            atoms = () if differ else (*exclusive[a], *exclusive[b])
            compatible[key] = not contradicts([*tests[a], *tests[b], *atoms])
        return compatible[key]

    initial = sorted(transducer.initial)
    seen = {(p, q, p != q) for p in initial for q in initial if p <= q}
    pending = list(seen)
    while pending:
        p, q, differ = pending.pop()
        for labels, firsts in leaving[p].items():
            for a in firsts:
                for b in leaving[q].get(labels, ()):
                    if not together(a, b, differ):
                        continue
                    apart = differ or a is not b
                    if apart and a.target in transducer.final and b.target in transducer.final:
                        return True
                    low, high = sorted((a.target, b.target))
                    pair = (low, high, apart)
                    if pair not in seen:
                        if len(seen) >= limits.AMBIGUITY_PAIRS:
                            return True
                        seen.add(pair)
                        pending.append(pair)
    return False


def one_run_each(transducer: Transducer) -> bool:
    """True only if on every stream every set of events is the support of at most one complex event, of one run."""
    mark = frozenset((HIDDEN_LABEL,))
    marked = tuple(replace(t, labels=mark) if t.labels else t for t in transducer.transitions)
    return not ambiguous(replace(transducer, transitions=marked))


def enlarged(automaton: Transducer | Fragment, by: frozenset[str], *, before: bool = False) -> bool:
    """False only if on every stream no complex event is detected together with one that has all its marks and more.

    With labels ``by`` only marks with one of these labels count. With ``before`` it is about larger complex events that
    begin before the other. Atoms count as satisfiable.
    """
    leaving = automaton.leaving()
    tests = {t.test: conjuncts(t.test) for t in automaton.transitions}
    compatible: dict[tuple[Condition, Condition], bool] = {}

    def together(t: Transition, u: Transition) -> bool:
        # Many transitions have the same test.
        key = (t.test, u.test)
        if key not in compatible:
            compatible[key] = not contradicts([*tests[t.test], *tests[u.test]])
        return compatible[key]

    # The states of a run and of a larger one, whether it is larger already, and whether the run may begin to mark.
    seen = {(p, q, False, not before) for p in automaton.initial for q in automaton.initial}
    pending = list(seen)
    while pending:
        p, q, larger, may_begin = pending.pop()
        for t in leaving[p]:
            if t.labels and not may_begin:
                continue
            for u in leaving[q]:
                more = _counts(u, by) - _counts(t, by)
                if more < 0 or not together(t, u):
                    continue
                if (larger or more) and t.target in automaton.final and u.target in automaton.final:
                    return True
                pair = (t.target, u.target, larger or bool(more), may_begin or bool(u.labels))
                if pair not in seen:
                    if len(seen) >= limits.AMBIGUITY_PAIRS:
                        return True
                    seen.add(pair)
                    pending.append(pair)
    return False


def _counts(t: Transition, by: frozenset[str]) -> int:
    return int(not by.isdisjoint(t.labels) if by else bool(t.labels))
