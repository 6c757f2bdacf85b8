"""The automata of the papers as values, their runs, and their drawings."""
