"""Queries on Spark: a DataFrame of events goes in, a DataFrame of matches comes out.

Spark moves and orders the events, the recognisers of `cerflow.engine` run in its tasks. `batch` is the front door,
`plan` decides what a query needs, `pushdown` and `narrowing` what need not be sent, `placement` which task gets which
events, by what `survey` finds out and by the arithmetic of `slices`. `frames`, `conditions`, `slice_frames` and
`positions` prepare the events as Spark expressions, `ordering` puts them together; `tasks` and `slice_tasks` are what
runs on the workers, and `explanation` tells of all that. `job` writes matches and bad records to files and counts them;
`stream_frames` makes several DataFrames one. `source` is another way, for Parquet files that tasks read themselves.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("cerflow.spark needs PySpark: pip install 'cerflow[spark]'")

from cerflow.spark.batch import bad_records, explain, match
from cerflow.spark.frames.streams import streams
from cerflow.spark.job import RunResult, run
from cerflow.spark.source import CerflowSource, register
from cerflow.stream_inputs import Input, Streams

__all__ = [
    "CerflowSource",
    "Input",
    "RunResult",
    "Streams",
    "bad_records",
    "explain",
    "match",
    "register",
    "run",
    "streams",
]
