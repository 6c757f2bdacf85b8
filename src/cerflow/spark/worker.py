"""The processes of Spark's Python, each of which runs many tasks."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from cerflow.engine.kernels.base.library import load_kernels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["prepare_worker", "run_own_python"]


def run_own_python(spark: SparkSession) -> None:
    """Let workers on this machine run this interpreter, unless the user names another.

    Where no environment is activated, Spark starts the ``python3`` of the PATH, which need not have cerflow. Executors
    elsewhere, and those of Spark Connect, run what the cluster says.
    """
    if not hasattr(spark, "_jvm") or "PYSPARK_PYTHON" in os.environ:
        return
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        # Functions that are made from now on travel with it; PySpark reads the setting only where it is submitted.
        context.pythonExec = context.getConf().get("spark.pyspark.python", sys.executable)


@cache
def prepare_worker() -> None:
    """Prepare the process for tasks, once; tasks call this after their imports, before their first events."""
    load_kernels()
    # Behind each task Spark collects garbage. Looking for it among all that was imported takes 50 ms.
    gc.freeze()
