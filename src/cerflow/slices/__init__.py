"""Slices of a stream that can be recognised side by side: whether a query allows them, and threads that do it."""
