"""The first-order reading: into second-order formulas and back, the safe form, the locally parametrized normal form.

Formulas come in and go out; `cerflow.rewritings` and `cerflow.Query` call this room.
"""
