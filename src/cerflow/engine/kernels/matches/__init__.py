"""Kernels that read the match graph: they count, fold, choose and unfold matches.

Arguments besides those in `cerflow.engine.kernels`:

- ``first`` and ``last``: the detections ``[first, last)``; ``found``: one result for each detection.
- ``amounts``: int64 (nodes,), the number of complex events of each set.
- ``known``: int8 (nodes,), 1 for the nodes that have a value; ``low``: int64 (nodes,), the earliest start below a node;
  ``order``: int32 (nodes,), room for nodes, children first.
"""
