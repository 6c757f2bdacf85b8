"""Evaluates conditions and expressions as columns of a batch, or on one event; strings become codes here."""
