"""The automata of the papers as values, what a run of them is, and their drawings."""
