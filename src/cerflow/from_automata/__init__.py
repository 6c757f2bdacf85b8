"""From automata back to formulas and star expressions, and to descriptions and drawings."""
