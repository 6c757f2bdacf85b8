"""Queries on Spark: a DataFrame of events goes in, a DataFrame of matches comes out.

Spark moves and orders the events, the recognisers of `cerflow.engine` run in its tasks. `batch` is the front door,
`plan` decides what a query needs, `placement` which task gets which events, by what `survey` finds out and by the
arithmetic of `slices`; `frames`, `slice_frames` and `positions` prepare the events as Spark expressions, `ordering`
puts them together; `tasks` and `slice_tasks` are what runs on the workers.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("cerflow.spark needs PySpark: pip install 'cerflow[spark]'")

from cerflow.spark.batch import bad_records, explain, match

__all__ = ["bad_records", "explain", "match"]
