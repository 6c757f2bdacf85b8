"""The automata of the papers as values, and their constructions, one per file, each citing its theorem.

These models keep what `cerflow.automata.model.transducer` has compiled away: ε-transitions, one start state or several,
registers that hold whole events and go by a name, register selections, conditions over empty registers.
`translations.engine_model` leads to the model of the engine and back. Nothing here is meant to be fast; nothing in the
engine depends on it.
What is public of this room stands in `cerflow.automata`.
"""
