"""The data source ``cerflow``: the tasks of Spark read Parquet files themselves, recognise, and give matches.

`planned` decides everything before the read, from the options, the `files` with their footers, and the slices
(`cerflow.engine.slices.cutting`). `task` runs on the workers, and `row_groups` reads the events of its slice. The
class that Spark finds by itself is in the package ``pyspark_cerflow``, which imports this room only when needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from cerflow.spark.worker import run_own_python
from pyspark_cerflow import DefaultSource as CerflowSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CerflowSource", "register"]


def register(spark: SparkSession) -> None:
    """Make the format ``cerflow`` known to a session that has not found it by itself.

    Spark looks for it once, with the Python of the driver, and in what that can import.
    """
    run_own_python(spark)
    try:
        spark.dataSource.register(CerflowSource)
    except PySparkException as error:
        # Spark 4.0 refuses a second time.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
