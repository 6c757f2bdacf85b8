"""Pictures: a diagram of states and arrows, or a formula, becomes SVG, Mermaid or Graphviz's language.

Input is a `Diagram`, which says nothing of automata, or a tree of a language; output is text. Graphviz, as the library
that the extra ``cerflow[pictures]`` installs, lays diagrams out. Formulas are drawn without it.
"""
