"""Kernels that read the match graph: they count, fold, choose and unfold matches.

Arguments besides those in `cerflow.engine.kernels`: ``found`` has one result for each of the ``detections``;
``amounts`` (int64) has the number of complex events of each set. ``room`` has a match graph and the one to write:
``new``, the same as int32 (``new_small``), and ``found``, its detections.
"""
