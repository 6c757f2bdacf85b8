"""Pictures of automata in the notation of the papers.

Edges of a transducer read ``φ ↑ o ↓ W`` (004), of a register match automaton ``f / rs / R / o`` (003). Outputs are •
and ⊗; labels other than the one of ``MARK`` follow the •. Edges of a complex event automaton read
``P | •`` or ``P | ◦`` (P1), with sets of labels ``P | {A, B}`` (P2).
"""

from __future__ import annotations

from cerflow.language.automaton import show_state, sorted_states
from cerflow.language.condition import Condition, Not
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Satisfied, Shown
from cerflow.look.pictures.diagram import Arrow, Diagram, Line, Piece, Vertex, plain
from cerflow.look.pictures.diagram import to_dot as dot_of
from cerflow.look.pictures.diagram import to_mermaid as mermaid_of
from cerflow.look.pictures.diagram_svg import to_svg as svg_of
from cerflow.look.pictures.svg import Theme
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton, TransitionLike
from cerflow.theory.papers.model.models import ComplexEventTransition, MatchTransition, UnaryComplexEventTransition


def show_edge(t: TransitionLike) -> str:
    """The text on the edge of a transition: ``φ ↑ o ↓ W``, ``f / rs / R / o``, ``P | m``, ``P | L``, or ε."""
    return plain(_pieces(t))


def automaton_diagram(automaton: Automaton) -> Diagram:
    """The automaton as a diagram; start states have an arrow from nowhere, final ones two circles."""
    number = {state: k for k, state in enumerate(sorted_states(automaton.states))}
    return Diagram(
        "automaton",
        "s",
        [Vertex(show_state(state), state in automaton.starts, state in automaton.finals) for state in number],
        [Arrow(number[t.source], number[t.target], (_pieces(t),), bool(t.output)) for t in automaton.transitions],
    )


def to_dot(automaton: Automaton) -> str:
    """The automaton in the language of Graphviz: start states have an arrow from nowhere, final ones two circles."""
    return dot_of(automaton_diagram(automaton))


def to_mermaid(automaton: Automaton) -> str:
    """The automaton as a Mermaid flow chart, which Markdown viewers draw; as in `to_dot`."""
    return mermaid_of(automaton_diagram(automaton))


def to_svg(automaton: Automaton, *, theme: Theme = "auto") -> str:
    """The automaton as SVG; see `cerflow.Query.to_svg` for ``theme`` and errors."""
    return svg_of(automaton_diagram(automaton), title=str(automaton), theme=theme)


def _pieces(t: TransitionLike) -> Line:
    if t.condition is None:
        return (Piece("ε"),)
    if isinstance(t, ComplexEventTransition | UnaryComplexEventTransition):
        output = _set(t.output) if isinstance(t, UnaryComplexEventTransition) else "•" if t.marks else "◦"
        return Piece(_condition(t.condition)), Piece(" | "), Piece(output, "labels")
    output = "⊗" if t.output == SKIPPED else "•" if t.output == MARKED else f"• {', '.join(sorted(t.output))}"
    if isinstance(t, MatchTransition) and t.formula is not None:
        selection = f"({', '.join(t.selection)})" if len(t.selection) > 1 else "".join(t.selection) or "~"
        writes = Piece(f" / {_set(t.writes)}", "write")
        return Piece(f"{_condition(t.formula)} / {selection}"), writes, Piece(" / "), Piece(output, "labels")
    found = Piece(_condition(t.condition)), Piece(" ↑ "), Piece(output, "labels")
    return (*found, Piece(f" ↓ {', '.join(sorted(t.writes))}", "write")) if t.writes else found


def _condition(condition: Condition) -> str:
    if condition == TRUE:
        return "⊤"

    def visit(current: Node) -> Node:
        # Bottom-up: parts below a negation are already `Satisfied`.
        match current:
            case Not(Satisfied(inner)):
                return Shown(f"¬({show(inner)})")
        return current

    return show(transform(condition, visit))


def _set(names: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}" if names else "∅"
