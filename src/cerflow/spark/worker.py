"""The processes of Spark's Python, each of which runs many tasks."""

from __future__ import annotations

import gc
from functools import cache

from cerflow.engine.recognize.warmup import ensure_compiled

__all__ = ["prepare_worker"]


@cache
def prepare_worker() -> None:
    """Prepare the process for tasks, once; tasks call this after their imports, before their first events."""
    # Otherwise each process of a node would compile the same kernels when they are needed.
    ensure_compiled()
    # Behind each task Spark collects garbage. Looking for it among all that was imported takes 50 ms.
    gc.freeze()
