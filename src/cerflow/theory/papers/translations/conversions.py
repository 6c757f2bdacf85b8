"""The models of the papers converted into one another, into formulas, JSON and the engine's transducers, and back.

Formulas with conditions on single events become UCEA (P1 Theorem 3; P2 Proposition 5.2, Theorems 5.3 and 6.2) by the
constructions of the engine. Their results differ from the papers' only in size: equivalent states are merged.

The engine's model has no ε-transitions, keeps values rather than events, and reads an empty register as null. So on the
way there a state also records which registers have been written, and an atom on an empty register becomes FALSE. On the
way back every register must have been written where it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, overload

from cerflow.automata.compile.automaton import compile_automaton
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.fragment import Fragment, RegisterFile
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer
from cerflow.base.errors import UnsupportedQueryError, expect, one_of
from cerflow.language.automaton import AutomatonFormula, AutomatonStep, Model, State
from cerflow.language.automaton_json import automaton_from_json
from cerflow.language.builder.given import FormulaGiven, of_formula
from cerflow.language.condition import Condition, Expression, TruthValue, with_labels
from cerflow.language.formula import CountWindow, Formula, Strategy, Within
from cerflow.language.node import walk
from cerflow.language.parser import parse_condition, parse_formula
from cerflow.language.select import Projection, ProjectionKind, Select
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.conditions.guards import Stored, TypeTest, is_local, substitute
from cerflow.theory.deciding.finite_memory import UnboundedMemoryError, determinize
from cerflow.theory.from_automata import compile_star, formula_of, star_formula_of
from cerflow.theory.papers.constructions.normal_forms import eliminate_epsilon, is_register_safe, restrict_to_window
from cerflow.theory.papers.model.automaton import MARKED, Automaton, TransitionLike
from cerflow.theory.papers.model.faults import AutomatonError, NotMemorylessError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, MatchTransition, defined_for
from cerflow.theory.rewriting.first_order.reading import query_from_first_order

__all__ = ["as_complex_event_automaton", "as_unary_automaton", "compile_cel", "compile_cel_star"]
__all__ += ["from_engine", "from_json", "of_type", "star_to_formula", "to_engine", "to_formula", "with_marked_ends"]

#: Features that only the engine's transitions have.
_BEYOND = (guards.AllRows, guards.InWindow, guards.Measure, guards.NoRow, guards.SetCall, TruthValue)


def to_engine(automaton: Automaton) -> Transducer:
    """The engine's transducer with the same runs: the marks of a run over the events 0 … n are detected at n.

    Only runs that mark event n count for a `ComplexEventAutomaton`. ε-transitions are eliminated, and atoms on empty
    registers are decided. A match may begin later than at the first event only if the automaton says so; see
    `streaming`.
    """
    formula = as_formula(automaton)
    registers = RegisterFile()
    whole = replace(formula, anywhere=False, ends_marked=formula.model is Model.CEA)
    made = compile_automaton(whole, registers).trimmed()
    return (made if made.states else Fragment(1, {0})).finished(registers.registers)


def from_engine(transducer: Transducer) -> SRT:
    """The papers' transducer with the same runs; a window of events becomes part of its states.

    `as_unary_automaton` and `as_complex_event_automaton` convert it further.

    Raises `UnsupportedQueryError` for features that the model lacks: registers that accumulate or hold collections,
    values that depend on other registers, windows of time or of an attribute, the label of an event's own type, and
    registers that may be empty where they are read.
    """

    def on_event(register: int, value: Expression) -> Expression:
        return with_labels(value, lambda label: f"r{register}" if label is None else label)

    rows = _rows(transducer)
    fields: dict[Expression, Expression] = {Stored(r, k): on_event(r, v) for r in rows for k, v in enumerate(rows[r])}
    if any(TYPE_LABEL in t.labels for t in transducer.transitions):
        raise UnsupportedQueryError("an output of the papers does not depend on the type of the event")
    made = []
    for t in transducer.transitions:
        condition = substitute(conjunction([*conjuncts(t.test), *t.atoms]), fields)
        if not is_local(condition):
            raise UnsupportedQueryError("a register is read that is never written")
        writes = frozenset(f"r{w.register}" for w in t.writes)
        made.append(SRT.transition.of(t.source, t.target, condition, t.labels, writes))
    names = (f"r{k}" for k in range(len(transducer.registers)))
    whole = SRT.made(made, starts=transducer.initial, finals=transducer.final, registers=names)
    if not is_register_safe(whole):
        raise UnsupportedQueryError("a register may be empty where it is read, which the two models read differently")
    match transducer.window:
        case None:
            return whole
        case CountWindow(events):
            return restrict_to_window(whole, events)
    raise UnsupportedQueryError("the papers' transducers have only windows of events")


def _rows(transducer: Transducer) -> dict[int, tuple[Expression, ...]]:
    """The values of an event that each register holds; refuses registers that hold anything else."""
    rows: dict[int, tuple[Expression, ...]] = {}
    for t in transducer.transitions:
        for tree in (t.test, *t.atoms, *(e for w in t.writes for e in w.row)):
            for current in walk(tree):
                if isinstance(current, _BEYOND):
                    raise UnsupportedQueryError(f"a condition of the papers cannot contain {type(current).__name__}")
        for write in t.writes:
            plain = write.fresh and not write.where and all(map(is_local, write.row))
            if not plain or rows.setdefault(write.register, write.row) != write.row:
                raise UnsupportedQueryError("a register holds something other than one event")
    return rows


def unary_from_engine(transducer: Transducer) -> UCEA:
    """The UCEA of a transducer without registers."""
    return as_unary_automaton(from_engine(transducer).trimmed())


def as_unary_automaton(automaton: Automaton) -> UCEA:
    """The UCEA with the same complex events.

    In a `ComplexEventAutomaton`, • becomes the label "event", and only • enters final states. For a transducer or a
    register match automaton, C is in ``⟦A⟧_n`` if it is among the `matches` of the events 0 … n. Raises
    `NotMemorylessError` if a condition reads a register; registers that are only written are left out.
    """
    if isinstance(automaton, CEA):
        automaton = with_marked_ends(automaton)
    return _without_registers(automaton).as_model(UCEA)


def as_complex_event_automaton(automaton: Automaton) -> CEA:
    """The CEA that marks the events that the other automaton labels: its complex events are the supports of the others.

    As the model requires, only complex events that end with the last event read count. Raises `NotMemorylessError` if a
    condition reads a register.
    """
    return _without_registers(automaton).as_model(CEA)


@defined_for(CEA)
def with_marked_ends(automaton: CEA) -> CEA:
    """The same complex events, with final states that only • enters, as erratum E4 requires.

    Automata compiled from formulas already have this form. Otherwise there are new final states without outgoing
    transitions: the pairs (q, "•").
    """
    ends = [t for t in automaton.transitions if t.target in automaton.finals]
    if all(t.marks for t in ends):
        return automaton
    copies: dict[State, State] = {q: (q, "•") for q in automaton.finals}
    marked = (t.between(t.source, copies[t.target]) for t in ends if t.marks)
    return automaton.with_transitions((*automaton.transitions, *marked), finals=copies.values())


def _without_registers(automaton: Automaton) -> Automaton:
    if not automaton.model.anywhere:
        return automaton
    transducer = eliminate_epsilon(automaton.as_model(SRT)).renumbered()
    for register in sorted(transducer.read):
        raise NotMemorylessError(f"a condition reads register {register}; only automata without memory have none")
    return transducer


@overload
def compile_cel(formula: FormulaGiven, *, reading: Literal["second-order"] = "second-order") -> UCEA: ...
@overload
def compile_cel(formula: FormulaGiven, *, reading: Literal["first-order"]) -> CEA: ...
def compile_cel(
    formula: FormulaGiven, *, reading: Literal["second-order", "first-order"] = "second-order"
) -> UCEA | CEA:
    """The automaton with ``C ∈ ⟦A⟧_n`` iff C is a complex event of the formula over the events 0 … n.

    All operators of the language are allowed, including windows of events, if conditions are on single events. A
    condition on an earlier event, as in ``A AS x ; (B FILTER x.v > 1)``, becomes part of the states: the formula is
    rewritten (P1 Theorem 2), then determinised. With ``reading="first-order"`` it is the CEA of the first-order formula
    (P1 Theorem 3), whatever formula is given: C is a set of positions.

    Raises `NotMemorylessError` for conditions that relate events, `QueryError` for labels out of scope or variables
    that are not well-formed, and `UnsupportedQueryError` for a too large automaton, and in the second-order reading for
    EVENT and NOT, which label an event with a type that the formula does not name.
    """
    one_of(reading, "reading", "second-order", "first-order")
    if reading == "second-order":
        return _unary(formula)
    return as_complex_event_automaton(_unary(formula, first_order=True))


@of_formula
def _unary(formula: Formula, *, first_order: bool = False) -> UCEA:
    transducer = compile_formula(query_from_first_order(Select(formula)).formula if first_order else formula)
    if transducer.registers:
        try:
            transducer = determinize(transducer)
        except UnboundedMemoryError as error:
            raise NotMemorylessError(f"no automaton without memory has these complex events: {error.reason}") from error
    return unary_from_engine(transducer)


@of_formula
def compile_cel_star(formula: Formula) -> UCEA:
    """The automaton whose complex events under *-semantics are those of the formula (Theorem 5.3).

    Operators are event types, AS, renaming, FILTER, OR, ``;`` and ``+``. Raises the errors of `compile_cel`, and
    `UnsupportedQueryError` for other operators and for conditions that relate labels.
    """
    return unary_from_engine(compile_star(formula))


def to_formula(automaton: CEA | UCEA | Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula with the complex events of an automaton without registers, by Kleene's construction (Theorem 6.2).

    States are eliminated one by one. If a state skips any events, its incoming and outgoing parts are joined by ``;``,
    otherwise by ``:``; repetitions become ``+`` and ``:+``. START and PROJECT are used only if needed: for runs that
    begin with the first event, and for events that are read but left out. ``types`` are all existing types of events;
    without it there may be any. Raises `UnsupportedQueryError` for registers, for tests that no formula expresses, for
    events labelled under unknown types, and for a too large result.
    """
    return formula_of(_engine(automaton), types=types)


def star_to_formula(automaton: CEA | UCEA | Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula of ``;``, ``+`` and OR with the complex events of the automaton under *-semantics (Theorem 5.3).

    Transitions without labels are ignored. Options and errors are those of `to_formula`.
    """
    return star_formula_of(_engine(automaton), types=types)


def _engine(automaton: CEA | UCEA | Transducer) -> Transducer:
    return automaton if isinstance(automaton, Transducer) else to_engine(automaton)


def of_type(name: str) -> Condition:
    """``tuples(R)``: the condition that the event is of a type."""
    return TypeTest(name)


_MODELS = {kind.model: kind for kind in (CEA, UCEA, RMA, SRT)}


def as_formula(automaton: Automaton) -> AutomatonFormula:
    """The automaton as a formula, with the runs of `reported_matches`."""
    expect(automaton, Automaton, "an automaton must be one of cerflow.automata")
    model, steps = automaton.model, tuple(map(_step, automaton.transitions))
    states = automaton.states, automaton.starts, automaton.finals
    return AutomatonFormula(model, *states, automaton.registers, steps, model.anywhere, model.ends_marked)


def as_query(
    automaton: Automaton, detect: bool, within: str | None, partition_by: str | Sequence[str], strategy: Strategy
) -> Select:
    """See `cerflow.Query.from_automaton`."""
    formula = as_formula(automaton)
    if detect:
        # Runs begin at any event and mark all events that they read.
        steps = (replace(s, output=MARKED) if s.condition is not None else s for s in formula.steps)
        formula = replace(formula, steps=tuple(steps), anywhere=True)
    window = None
    if within is not None:
        in_window = parse_formula(f"EVENT WITHIN {within}")
        assert isinstance(in_window, Within)
        window = in_window.window
    return Select(
        formula,
        projection=Projection(ProjectionKind.NONE if detect else ProjectionKind.ALL),
        partition=tuple((key,) for key in ((partition_by,) if isinstance(partition_by, str) else partition_by)),
        window=window,
        strategy=strategy,
    )


def from_json(text: str) -> Automaton:
    """The automaton that `to_json` wrote, of the same model.

    Raises `QueryError`, which names the part of the text at fault, and a subclass of `AutomatonError` if the parts do
    not fit together.
    """
    formula = automaton_from_json(text, partial(parse_condition, bare_attributes=True))
    kind: type[Automaton] = _MODELS[formula.model]
    if kind is SRT and len(formula.starts) != 1:
        raise AutomatonError(f"an SRT has one start state, not {len(formula.starts)}")
    transitions = []
    for step in formula.steps:
        # Automata say what is wrong with an ε-transition or a register.
        made = kind.transition.of(step.source, step.target, step.condition, step.output, step.writes)
        if isinstance(made, MatchTransition):
            parameters, selection = ((p for p, _ in step.selection), (r for _, r in step.selection))
            made = replace(made, parameters=tuple(parameters), selection=tuple(selection))
        transitions.append(made)
    parts = {name: getattr(formula, name) for name in ("states", "starts", "finals", "registers")}
    return kind.of_parts(**parts, transitions=tuple(transitions))


def _step(t: TransitionLike) -> AutomatonStep:
    if isinstance(t, MatchTransition):
        selection = tuple(zip(t.parameters, t.selection))
        return AutomatonStep(t.source, t.target, t.formula, t.output, t.writes, selection)
    return AutomatonStep(t.source, t.target, t.condition, t.output, t.writes)
