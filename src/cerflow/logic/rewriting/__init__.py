"""Formulas to formulas that mean the same, as the engine needs them."""
