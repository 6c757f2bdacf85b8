"""From a formula or an expression to a transducer: one construction a file, each citing its theorem.

In come trees that `cerflow.rewriting` has brought into form, out come fragments and, from `formulas` and `sremo`,
finished transducers. The engine's planning, deciding and explanations call it.
"""
