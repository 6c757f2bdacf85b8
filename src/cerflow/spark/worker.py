"""The processes of Spark's Python, each of which runs many tasks."""

from __future__ import annotations

import gc
from functools import cache

from cerflow.engine.kernels.base.library import load_kernels

__all__ = ["prepare_worker"]


@cache
def prepare_worker() -> None:
    """Prepare the process for tasks, once; tasks call this after their imports, before their first events."""
    load_kernels()
    # Behind each task Spark collects garbage. Looking for it among all that was imported takes 50 ms.
    gc.freeze()
