"""The processes of Spark's Python, each of which runs many tasks."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from weakref import WeakSet

from cerflow.base.errors import InputError
from cerflow.engine.kernels.base.library import load_kernels
from cerflow.spark.failures import as_cerflow_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The contexts of Spark whose workers are known to have cerflow.
_equipped: WeakSet[object] = WeakSet()


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


def require_cerflow(spark: SparkSession) -> None:
    """Raise `InputError` if workers run another Python that cannot import cerflow; a job of one task finds that out.

    Otherwise the tasks of the query would fail, each several times, with the traces of Java and Python.
    """
    if not hasattr(spark, "_jvm"):
        return
    context = spark.sparkContext
    own = str(context.master).startswith("local") and context.pythonExec == sys.executable
    if own or context in _equipped:
        return
    try:
        # Functions that every Python has: those of cerflow would have to be imported there.
        (there,) = context.parallelize(["cerflow"], 1).map(find_spec).map(bool).collect()
    except Exception as error:
        raise as_cerflow_error(error) from error
    if not there:
        raise InputError(
            f"the Python that Spark's workers run, '{context.pythonExec}', cannot import cerflow: install cerflow "
            "there, send it with the job (--py-files or spark.archives), or let PYSPARK_PYTHON name a Python on the "
            "workers that has it; see the manual's page 'On a cluster'"
        )
    _equipped.add(context)


@cache
def prepare_worker() -> None:
    """Prepare the process for tasks, once; tasks call this after their imports, before their first events."""
    load_kernels()
    # After each task Spark collects garbage. Looking for it among all that was imported takes 50 ms.
    gc.freeze()
