"""One algebra of conditions: guards, their atomic conditions, normal forms, cases and contradictions.

The functions take conditions of `cerflow.language` and give conditions that mean the same, or facts about them.
Rewriting, automata, deciding and the engine use them.
"""
