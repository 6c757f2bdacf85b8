"""Questions about queries that are decided on automata: equivalence, satisfiability, finite memory, remarks.

In come queries or transducers, out come answers with a witness. `cerflow.equivalence` and `check` call it.
"""
