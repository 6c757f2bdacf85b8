"""Numba kernels: plain functions on arrays, driven by tables, one set for all queries.

They raise nothing; when something is full they say so and the caller makes room and calls again.
"""
