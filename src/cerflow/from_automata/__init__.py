"""From automata back to formulas, to star expressions, to a description or a drawing in Graphviz's language."""
