"""Counts and folds of the matches of many detections along a sliding window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Floats, Ints
from cerflow.engine import layout
from cerflow.engine.kernels.base.calling import Kernel
from cerflow.engine.kernels.matches.slide import FRONTIER, PROGRESS_WORDS
from cerflow.engine.kernels.matches.slide_folds import FACTORS, SUMS
from cerflow.engine.kernels.table import slide, slide_folds
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.stopping import portions

#: The greatest number of sets on the frontier of a fold; each has two numbers for each node.
_SETS = 4


def count_sliding(part: Part, found: Ints) -> int:
    """Write the number of matches of each detection to ``found``; returns the first detection not counted.

    All are counted if window and query allow it; see `cerflow.engine.kernels.matches.slide`.
    """
    if not _slides(part):
        return 0
    top, marks = len(part.nodes), len(part.marks)
    starts = (np.zeros(marks, np.int32), np.empty(marks, np.int64))
    old = (np.empty(top, np.int64), np.empty((FRONTIER, marks + 1), np.int64))
    new = (np.empty(top, np.int64), np.empty((top, FRONTIER), np.int64))
    shared = (np.empty(FRONTIER, np.int32), np.zeros(PROGRESS_WORDS, np.int64))
    return _in_portions(slide, part, (), (*starts, *old, *new, *shared), found)


def fold_sliding(part: Part, operation: int, weights: Floats, found: Floats) -> int:
    """Write the values below each detection to ``found`` (detections, 2); returns the first detection without one.

    That is 0 for small parts, where a plain walk is faster. `cerflow.engine.kernels.matches.slide_folds` describes the
    operations, the pairs that values consist of, and ``weights`` (marks, 2).
    """
    if len(part.detections) * len(part.nodes) <= limits.FOLDED_PAIRS or not _slides(part):
        return 0
    top, marks = len(part.nodes), len(part.marks)
    units = {SUMS: ((0.0, 0.0), (0.0, 1.0)), FACTORS: ((0.0, 0.0), (1.0, 1.0))}
    none = units.get(operation, ((np.nan, 0.0), (np.nan, 1.0)))
    starts = (np.zeros(marks, np.int32), np.empty(marks, np.int64))
    old = (np.empty((top, 2)), np.empty((_SETS, marks + 1, 2)))
    new = (np.empty((top, 2)), np.empty((top, _SETS, 2)))
    shared = (np.empty(_SETS, np.int32), np.zeros(PROGRESS_WORDS, np.int64))
    fold = (operation, np.array(none), weights)
    return _in_portions(slide_folds, part, fold, (*starts, *old, *new, *shared), found)


def _in_portions(kernel: Kernel, part: Part, fold: tuple[Any, ...], state: tuple[Any, ...], found: NDArray[Any]) -> int:
    """Run a kernel over portions of detections with shared state; returns the first detection left out."""
    for begin, end in portions(0, len(part.detections)):
        graph = (part.nodes, part.nodes.view(np.int32), part.detections[begin:end])
        done: int = begin + kernel(*graph, *fold, *state, found[begin:end])
        if done < end:
            return done
    return len(part.detections)


def _slides(part: Part) -> bool:
    return not (np.diff(part.detections[:, layout.D_BOUND]) < 0).any()
