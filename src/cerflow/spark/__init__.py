"""Queries on Spark: a DataFrame of events goes in, a DataFrame of matches comes out.

Spark moves and orders the events, the recognisers of `cerflow.engine` run in its tasks. `batch` is the front door,
`plan` decides what a query needs, `pushdown` what need not be sent, `frames`, `conditions` and `positions` prepare the
events as Spark expressions, `tasks` is what runs on the workers, and `explanation` tells of all that.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("cerflow.spark needs PySpark: pip install 'cerflow[spark]'")

from cerflow.spark.batch import bad_records, match
from cerflow.spark.explanation import explain

__all__ = ["bad_records", "explain", "match"]
