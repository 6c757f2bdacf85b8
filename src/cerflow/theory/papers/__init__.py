"""The automata of the papers as values, and their constructions by topic, each citing its theorem.

These models keep features that `cerflow.automata.model.transducer` has compiled away: ε-transitions, one or several
start states, named registers that hold whole events, register selections, conditions over empty registers.
`translations.conversions` converts to the model of the engine and back. The code is not meant to be fast, and the
engine does not depend on it. The public names of this room are in `cerflow.automata`.
"""
