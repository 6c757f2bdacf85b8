"""The languages: syntax trees, parsers and printers of CEQL and SREMO, and the Python builder.

In comes text (or Python expressions), out come immutable trees; what they mean is said in `cerflow.theory.semantics`.
"""
