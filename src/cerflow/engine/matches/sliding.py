"""Counting the matches of many detections along a sliding window."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.matches.slide import FRONTIER, slide
from cerflow.engine.matches.unfolding import Part
from cerflow.values.array_types import Ints

__all__ = ["count_sliding"]


def count_sliding(part: Part, found: Ints) -> int:
    """Write the number of matches of each detection to ``found``; returns the first detection not counted.

    If window and query allow it, all are counted; see `cerflow.engine.kernels.matches.slide`.
    """
    nodes, detections = part.nodes, part.detections
    if (np.diff(detections[:, layout.D_BOUND]) < 0).any():
        return 0
    top, marks = len(nodes), len(part.marks)
    starts = (np.zeros(marks, np.int32), np.empty(marks, np.int64))
    old = (np.empty(top, np.int64), np.empty((FRONTIER, marks + 1), np.int64))
    new = (np.empty(top, np.int64), np.empty((top, FRONTIER), np.int64))
    shared = (np.empty(FRONTIER, np.int32), np.zeros(2, np.int64))
    counted: int = slide(nodes, nodes.view(np.int32), detections, *starts, *old, *new, *shared, found)
    return counted
