"""Kernels that read the match graph: they count, fold, choose and unfold matches.

Arguments besides those in `cerflow.engine.kernels`: ``found`` has one result for each of the ``detections``;
``amounts`` (int64) has the number of complex events of each set.
"""
