"""From a transducer back to a formula (P2 Theorems 5.3 and 6.2, Appendix C.1)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.condition import Constant
from cerflow.language.formula import AnyEvent, Filter, Formula, Start, Within
from cerflow.theory.from_automata.transition_formulas import Descriptions
from cerflow.theory.rewriting.paths import Paths, paths_through

#: The places where paths begin (at any event, or at the very first) and end.
_ANYWHERE, _AT_ONCE, _END = -1, -2, -3


def formula_of(transducer: Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula with the complex events of a transducer; see `cerflow.automata.to_formula` for ``types`` and errors."""
    refuse_registers(transducer)
    return _formula(transducer, types, transducer.skipping)


def star_formula_of(transducer: Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula with the complex events under *-semantics; see `cerflow.automata.star_to_formula`."""
    return _formula(star_automaton(transducer), types, range(transducer.states))


def star_automaton(transducer: Transducer) -> Transducer:
    """The automaton without the transitions that label nothing (Proposition 5.4).

    If the automaton has the *-property (see `star_counterexample`), the result has under *-semantics the complex events
    that the automaton has under ordinary semantics. Raises `UnsupportedQueryError` for registers.
    """
    refuse_registers(transducer)
    return replace(transducer, transitions=tuple(t for t in transducer.transitions if t.labels))


def _formula(transducer: Transducer, types: Collection[str] | None, waiting: Collection[int]) -> Formula:
    """The formula of the runs; in the ``waiting`` states they pass over any events."""
    reads = Descriptions(transducer, types)
    edges: dict[tuple[int, int], Paths] = {}

    def add(t: Transition, target: int) -> None:
        formula = reads.of(t)
        paths = Paths() if formula is None else Paths.of(formula)
        edges[t.source, target] = edges.get((t.source, target), Paths()).or_(paths)

    for t in transducer.transitions:
        if not t.skips:
            add(t, t.target)
    for state in transducer.initial:
        edges[_ANYWHERE if state in waiting else _AT_ONCE, state] = Paths(empty=True)
    for state in transducer.final:
        edges[state, _END] = Paths(empty=True)
        if state in transducer.skipping:
            # Events read after the last event of the match are left out.
            add(Transition(state, state), _END)
    paths = paths_through(edges, range(transducer.states), lambda q: q not in waiting)
    found = Paths(paths.get((_ANYWHERE, _END), Paths()).formula)
    at_once = paths.get((_AT_ONCE, _END), Paths()).formula
    if at_once is not None:
        found = found.or_(Paths(Start(at_once)))
    if found.formula is None:
        return Filter(AnyEvent(), Constant(False))
    whole = reads.project(found.formula)
    return whole if transducer.window is None else Within(whole, transducer.window)


def refuse_registers(transducer: Transducer) -> None:
    """Raise `UnsupportedQueryError` if a transducer has registers."""
    if transducer.registers or any(t.atoms or t.writes for t in transducer.transitions):
        raise UnsupportedQueryError(
            "this automaton has registers; only automata without memory have a formula of their own",
            hint="Conditions that relate events need registers. push_down_filters turns choices between conditions "
            "on different events into choices between formulas.",
        )
