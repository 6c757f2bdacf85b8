"""Automata as text and pictures, in the notation of the papers."""

import pytest

from cerflow.automata import (
    MARKED,
    MatchTransition,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    compile_cepl,
    compile_sremo,
    show_edge,
    subset_construction,
    to_dot,
    to_mermaid,
    unroll,
)
from cerflow.theory.papers.model.conditions import not_satisfied
from support.register_automata import FIGURE_4, condition, edge


@pytest.mark.parametrize(
    ("transition", "text"),
    [
        (edge(0, 1), "ε"),
        (edge(0, 1, "TRUE"), "⊤ ↑ ⊗"),
        (edge(0, 1, "type = 'B'", "•", "r2", "r1"), "type = 'B' ↑ • ↓ r1, r2"),
        (
            SymbolicTransition(source=0, target=1, condition=condition("v > r.v"), output=frozenset("ab")),
            "v > r.v ↑ • a, b",
        ),
        (
            SymbolicTransition(source=0, target=1, condition=not_satisfied(condition("v > 1 AND NOT w = 2"))),
            "¬(v > 1 AND NOT w = 2) ↑ ⊗",
        ),
        (MatchTransition(source=0, target=0, formula=condition("TRUE")), "⊤ / ~ / ∅ / ⊗"),
        (
            MatchTransition(source=0, target=1, formula=condition("x.v < y.v"), parameters=("x", "y"),
                            selection=("r1", "~"), writes=frozenset(("r2",)), output=MARKED),
            "x.v < y.v / (r1, ~) / {r2} / •",
        ),
    ],
)  # fmt: skip
def test_edges(transition, text):
    assert show_edge(transition) == text


DOT = """digraph automaton {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=10];
  s0 [label="q1"];
  s1 [label="qf", shape=doublecircle];
  s2 [label="qs"];
  begin2 [shape=point, label=""];
  begin2 -> s2;
  s2 -> s2 [label="⊤ ↑ ⊗"];
  s2 -> s0 [label="type = 'B' ↑ • ↓ r"];
  s0 -> s0 [label="⊤ ↑ ⊗"];
  s0 -> s1 [label="type = 'S' AND id = r.id ↑ •"];
}
"""

MERMAID = """flowchart LR
  s0(("q1"))
  s1((("qf")))
  s2(("qs"))
  begin2[" "] --> s2
  style begin2 fill:none,stroke:none
  s2 -- "⊤ ↑ ⊗" --> s2
  s2 -- "type = 'B' ↑ • ↓ r" --> s0
  s0 -- "⊤ ↑ ⊗" --> s0
  s0 -- "type = 'S' AND id = r.id ↑ •" --> s1
"""


def test_figure_4():
    assert to_dot(FIGURE_4) == DOT
    assert to_mermaid(FIGURE_4) == MERMAID


def test_all_states_and_transitions_are_drawn():
    for automaton in (
        compile_cepl("(T AS x ; H AS y) FILTER x.id = y.id"),
        compile_sremo("[TRUE]* . ![type = 'a'] . [v > 1] AS x"),
        subset_construction(unroll(FIGURE_4, 3).transducer),
    ):
        dot, mermaid = to_dot(automaton), to_mermaid(automaton)
        assert dot.count(" -> ") == len(automaton.transitions) + len(automaton.starts)
        assert mermaid.count(" --> ") == len(automaton.transitions) + len(automaton.starts)
        assert dot.count("doublecircle") == mermaid.count("(((") == len(automaton.finals)


def test_what_has_a_meaning_to_the_languages_is_escaped():
    t = SymbolicRegisterTransducer.of([edge('a"b', "c", "s = 'x\"<y'")], start='a"b', finals=["c"])
    assert 'label="a\\"b"' in to_dot(t)
    assert "a#34;b" in to_mermaid(t)
    assert "<" not in to_mermaid(t).replace("<br/>", "")
