"""Pictures of automata in the notation of the papers, for Graphviz and Mermaid.

Edges of a transducer read ``φ ↑ o ↓ W`` (004), of a register match automaton ``f / rs / R / o`` (003). Outputs are •
and ⊗; labels other than the one of ``MARK`` follow the •. Edges of a complex event automaton read
``P | •`` or ``P | ◦`` (P1), with sets of labels ``P | {A, B}`` (P2).
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.conditions.connectives import TRUE
from cerflow.conditions.guards import Satisfied
from cerflow.from_automata.diagrams import dot_escape, mermaid_escape
from cerflow.language.condition import Condition, Not
from cerflow.language.node import Node, node, transform
from cerflow.language.printer import show
from cerflow.papers.model.cea import ComplexEventTransition, UnaryComplexEventTransition
from cerflow.papers.model.rma import MatchTransition
from cerflow.papers.model.srt import (
    MARKED,
    SKIPPED,
    Automaton,
    State,
    TransitionLike,
    show_state,
    sorted_states,
)

__all__ = ["show_edge", "to_dot", "to_mermaid"]


@node
class _Negated(Condition):
    """``¬(φ)``, which holds where φ does not hold."""

    condition: Condition

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return ("¬(", self.condition, ")")


def show_edge(t: TransitionLike) -> str:
    """The text on the edge of a transition: ``φ ↑ o ↓ W``, ``f / rs / R / o``, ``P | m``, ``P | L``, or ε."""
    if t.condition is None:
        return "ε"
    if isinstance(t, ComplexEventTransition):
        return f"{_condition(t.condition)} | {'•' if t.marks else '◦'}"
    if isinstance(t, UnaryComplexEventTransition):
        return f"{_condition(t.condition)} | {_set(t.labels)}"
    if isinstance(t, MatchTransition):
        assert t.formula is not None
        selection = f"({', '.join(t.selection)})" if len(t.selection) > 1 else "".join(t.selection) or "~"
        return f"{_condition(t.formula)} / {selection} / {_set(t.writes)} / {_output(t.output)}"
    writes = f" ↓ {', '.join(sorted(t.writes))}" if t.writes else ""
    return f"{_condition(t.condition)} ↑ {_output(t.output)}{writes}"


def to_dot(automaton: Automaton) -> str:
    """The automaton in the language of Graphviz: start states have an arrow from nowhere, final ones two circles."""
    lines = ["digraph automaton {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica"];']
    lines.append('  edge [fontname="Helvetica", fontsize=10];')
    number = _numbers(automaton)
    for state, k in number.items():
        shape = ", shape=doublecircle" if state in automaton.finals else ""
        lines.append(f'  s{k} [label="{dot_escape(show_state(state))}"{shape}];')
    for state in sorted_states(automaton.starts):
        k = number[state]
        lines += [f'  begin{k} [shape=point, label=""];', f"  begin{k} -> s{k};"]
    for source, target, text in _edges(automaton, number):
        lines.append(f'  s{source} -> s{target} [label="{dot_escape(text)}"];')
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(automaton: Automaton) -> str:
    """The automaton as a Mermaid flow chart, which Markdown viewers draw; as in `to_dot`."""
    lines = ["flowchart LR"]
    number = _numbers(automaton)
    for state, k in number.items():
        left, right = ("(((", ")))") if state in automaton.finals else ("((", "))")
        lines.append(f'  s{k}{left}"{mermaid_escape(show_state(state))}"{right}')
    for state in sorted_states(automaton.starts):
        k = number[state]
        lines += [f'  begin{k}[" "] --> s{k}', f"  style begin{k} fill:none,stroke:none"]
    for source, target, text in _edges(automaton, number):
        lines.append(f'  s{source} -- "{mermaid_escape(text)}" --> s{target}')
    return "\n".join(lines) + "\n"


def _numbers(automaton: Automaton) -> dict[State, int]:
    return {state: k for k, state in enumerate(sorted_states(automaton.states))}


def _edges(automaton: Automaton, number: dict[State, int]) -> Iterator[tuple[int, int, str]]:
    for t in automaton.transitions:
        yield number[t.source], number[t.target], show_edge(t)


def _condition(condition: Condition) -> str:
    if condition == TRUE:
        return "⊤"

    def visit(current: Node) -> Node:
        # Bottom-up: parts below a negation are already `Satisfied`.
        match current:
            case Not(Satisfied(inner)):
                return _Negated(inner)
        return current

    return show(transform(condition, visit))


def _set(names: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}" if names else "∅"


def _output(output: frozenset[str]) -> str:
    if output == SKIPPED:
        return "⊗"
    return "•" if output == MARKED else f"• {', '.join(sorted(output))}"
