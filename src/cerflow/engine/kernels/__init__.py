"""Numba kernels: plain functions on arrays, driven by tables, one set for all queries.

They raise nothing; when something is full they say so and the caller makes room and calls again.

Every loop ends. Lists (of configurations, of partitions, of what has one hash) and heaps have no cycles, because an
entry enters one when it is made and leaves it before it is free; hash tables that are probed are never full; nodes
point to nodes of smaller numbers. Where it is none of these, a comment says what grows or decreases.
"""
