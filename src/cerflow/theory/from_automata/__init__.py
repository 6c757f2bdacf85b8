"""From automata back to formulas and star expressions."""
