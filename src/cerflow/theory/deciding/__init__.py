"""Questions about queries that are decided on automata: equivalence, satisfiability, finite memory, remarks.

The functions take formulas or transducers and answer with a witness. `cerflow.api.equivalence` and `check` call them.
What compares events with each other is decided in `cerflow.theory.deciding.solver`, where Z3 is installed.
"""
