"""The automaton model: transducers, their registers, fragments of them, and the definition of runs.

These are simple frozen values; all other modules of `cerflow.automata` make or read them.
"""
