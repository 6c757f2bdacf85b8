"""Kernels that hold the state: configurations and their indexes, the match graph, collections, partitions.

Arguments besides those in `cerflow.engine.kernels`: ``strategy`` is `EVERYTHING`, `EARLIEST` or `LATEST`. ``path`` is
int32, room for the nodes along which sets are melded, and ``limit`` the number of nodes with room. ``last`` is the
``place`` of the latest event that a configuration has read.
"""
