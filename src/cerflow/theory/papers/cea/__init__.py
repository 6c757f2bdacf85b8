"""Complex event automata with their constructions: products, the *-semantics, selection strategies."""
