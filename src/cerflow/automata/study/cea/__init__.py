"""Automata without memory: complex event automata (CEA; P1 §6) and those with sets of labels (UCEA; P2 §5.1)."""
