"""The automaton model: transducers, their registers, fragments of them, and what a run is.

These are frozen values without cleverness; everything else in `cerflow.automata` makes or reads them.
"""
