"""The papers' constructions on automata, by topic."""
