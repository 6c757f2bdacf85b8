"""The operators of CEL on the labels of an automaton: IN, renaming, FILTER, PROJECT, START (P2 §6.1, App. C.1).

OR, ``;``, ``+``, ``:`` and ``:+`` are `union`, `concatenate` and `iterate`; AND is `intersect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cerflow.language.condition import Condition
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.theory.papers.model.automaton import Effect, State, TransitionLike, check_epsilon_free, fresh_names
from cerflow.theory.papers.model.conditions import as_condition
from cerflow.theory.papers.model.faults import LabelSetError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for


@defined_for(UCEA, SRT, RMA)
def add_label(automaton: AnyA, label: str) -> AnyA:
    """``A IN label``: all events that have a label get this one, too."""
    _check_names(label)
    return _with_output(automaton, lambda output: output | {label} if output else output)


@defined_for(UCEA, SRT, RMA)
def rename_label(automaton: AnyA, old: str, new: str) -> AnyA:
    """``A[old -> new]``: events under the old label get the new one instead."""
    _check_names(old, new)
    return _with_output(automaton, lambda output: (output - {old}) | {new} if old in output else output)


@defined_for(UCEA, SRT, RMA)
def project_labels(automaton: AnyA, labels: Iterable[str]) -> AnyA:
    """``PROJECT labels (A)``: only these labels stay; a complex event may lose its last event, or all of them."""
    if isinstance(labels, str):
        raise LabelSetError(f"the labels that stay are a collection of names, not {labels!r}; write [{labels!r}]")
    kept = frozenset(labels)
    _check_names(*kept)
    return _with_output(automaton, lambda output: output & kept)


@defined_for(CEA, UCEA, SRT, RMA)
def filter_label(automaton: AnyA, label: str, condition: str | Condition) -> AnyA:
    """``A FILTER condition``: each event under the label satisfies a condition on it, as "v > 1" (P2 §4).

    The label of the marks of a CEA is "event". Without an event under the label the condition holds. Raises
    `QuerySyntaxError` for text that is not a condition.
    """
    _check_names(label)
    asked = conjuncts(as_condition(condition))

    def change(t: TransitionLike) -> Effect:
        if label not in t.output:
            return t.effect
        return conjunction([*conjuncts(t.guard), *asked]), t.output, t.writes

    return automaton.rewritten(change)


@defined_for(CEA, UCEA, SRT, RMA)
def anchor(automaton: AnyA) -> AnyA:
    """``START(A)``: the complex events that begin with the first event that the run reads.

    Raises `EpsilonFreeError` for an automaton with ε-transitions.
    """
    check_epsilon_free(automaton)
    begin: State = next(fresh_names(automaton.states, "begin"))
    first = [t.between(begin, t.target) for t in automaton.transitions if t.source in automaton.starts and t.output]
    return type(automaton).made(
        (*first, *automaton.transitions),
        starts=(begin,),
        finals=automaton.finals,
        registers=automaton.registers,
        states=automaton.states,
    )


def _with_output(automaton: AnyA, change: Callable[[frozenset[str]], frozenset[str]]) -> AnyA:
    return automaton.rewritten(lambda t: (t.condition, change(t.output), t.writes))


def _check_names(*labels: str) -> None:
    for label in labels:
        if not isinstance(label, str):
            raise LabelSetError(f"a label is a name, not {label!r}")
