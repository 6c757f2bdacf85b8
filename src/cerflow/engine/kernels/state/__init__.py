"""Kernels that hold the state: configurations and where they are found, the match graph, collections, partitions."""
