"""One algebra of conditions: guards, their atomic conditions, normal forms, cases and contradictions.

In come conditions of `cerflow.language`, out come conditions that mean the same, or facts about them. Rewriting,
automata, deciding and the engine use it.
"""
