"""From a formula or an expression to a transducer: one construction per file, each citing its theorem.

Input: trees in the form that `cerflow.logic.rewriting` gives. Output: fragments and, from `formulas` and `sremo`,
finished transducers. Planning, deciding and explanations use this room.
"""
