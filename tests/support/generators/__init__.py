"""Hypothesis strategies for queries, streams and automata."""
