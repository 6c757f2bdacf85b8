"""Automata of the papers as formulas of the language, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cerflow.base.errors import expect
from cerflow.language.automaton import AutomatonFormula, AutomatonStep
from cerflow.language.automaton_json import automaton_from_json, automaton_to_json
from cerflow.language.formula import Strategy, Within
from cerflow.language.parser import parse_condition, parse_formula
from cerflow.language.printer import show
from cerflow.language.select import Projection, ProjectionKind, Select
from cerflow.theory.papers.model.automaton import MARKED, Automaton, TransitionLike
from cerflow.theory.papers.model.faults import AutomatonError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, MatchTransition

_MODELS = {kind.model: kind for kind in (CEA, UCEA, RMA, SRT)}


def as_formula(automaton: Automaton) -> AutomatonFormula:
    """The automaton as a formula, with the runs of `reported_matches`."""
    expect(automaton, Automaton, "an automaton must be one of cerflow.automata")
    model = automaton.model
    return AutomatonFormula(
        model,
        automaton.states,
        automaton.starts,
        automaton.finals,
        automaton.registers,
        tuple(map(_step, automaton.transitions)),
        model.anywhere,
        model.ends_marked,
    )


def from_formula(formula: AutomatonFormula) -> Automaton:
    """The automaton of a formula; raises a subclass of `AutomatonError` if its parts do not fit together."""
    kind: type[Automaton] = _MODELS[formula.model]
    if kind is SRT and len(formula.starts) != 1:
        raise AutomatonError(f"an SRT has one start state, not {len(formula.starts)}")
    # Automata say what is wrong with an ε-transition or a register.
    transitions = tuple(_transition(kind, step) for step in formula.steps)
    return kind.of_parts(
        states=formula.states,
        starts=formula.starts,
        finals=formula.finals,
        transitions=transitions,
        registers=formula.registers,
    )


def _transition(kind: type[Automaton], step: AutomatonStep) -> TransitionLike:
    if kind is not RMA:
        return kind.transition.of(step.source, step.target, step.condition, step.output, step.writes)
    return MatchTransition(
        source=step.source,
        target=step.target,
        formula=step.condition,
        parameters=tuple(parameter for parameter, _ in step.selection),
        selection=tuple(register for _, register in step.selection),
        writes=step.writes,
        output=step.output,
    )


def _detecting(formula: AutomatonFormula) -> AutomatonFormula:
    """The automaton whose runs begin at any event, end as they like, and mark all events that they read."""
    steps = (replace(s, output=MARKED) if s.condition is not None else s for s in formula.steps)
    return replace(formula, steps=tuple(steps), anywhere=True)


def as_query(
    automaton: Automaton, detect: bool, within: str | None, partition_by: str | Sequence[str], strategy: Strategy
) -> Select:
    """See `cerflow.Query.from_automaton`."""
    formula = as_formula(automaton)
    window = None
    if within is not None:
        in_window = parse_formula(f"EVENT WITHIN {within}")
        assert isinstance(in_window, Within)
        window = in_window.window
    return Select(
        _detecting(formula) if detect else formula,
        projection=Projection(ProjectionKind.NONE if detect else ProjectionKind.ALL),
        partition=tuple((key,) for key in ((partition_by,) if isinstance(partition_by, str) else partition_by)),
        window=window,
        strategy=strategy,
    )


def to_json(automaton: Automaton) -> str:
    """The automaton as JSON that `from_json` reads; predicates stand in it by their names.

    Raises `UnsupportedQueryError` for conditions that are nested too deeply for JSON.
    """
    return automaton_to_json(as_formula(automaton), show)


def from_json(text: str) -> Automaton:
    """The automaton that `to_json` wrote, of the same model.

    Raises `QueryError`, which names the part of the text at fault, and a subclass of `AutomatonError` if the parts do
    not fit together.
    """
    return from_formula(automaton_from_json(text, partial(parse_condition, bare_attributes=True)))


def _step(t: TransitionLike) -> AutomatonStep:
    if isinstance(t, MatchTransition):
        selection = tuple(zip(t.parameters, t.selection))
        return AutomatonStep(t.source, t.target, t.formula, t.output, t.writes, selection)
    return AutomatonStep(t.source, t.target, t.condition, t.output, t.writes)
