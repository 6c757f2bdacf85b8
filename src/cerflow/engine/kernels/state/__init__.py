"""Kernels that hold the state: configurations and where they are found, the match graph, collections, partitions.

Beside the arguments that all kernels have (`cerflow.engine.kernels`): ``strategy`` is `EVERYTHING`, `EARLIEST` or
`LATEST`; ``path`` is int32, room for the nodes along which sets are melded, and ``limit`` the number of nodes that
there is room for; ``last`` is the ``place`` of the latest event that a configuration has read.
"""
