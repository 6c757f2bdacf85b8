"""Queries on Spark: a DataFrame of events goes in, a DataFrame of matches comes out.

Spark moves and orders the events, the recognisers of `cerflow.engine` run in its tasks. `batch` is the front door,
`job` writes matches and bad records to files and counts them, `explanation` tells how a query is evaluated. The room
`frames` prepares events as columns of DataFrames and leaves out those that need not be sent; `placing` decides which
task gets which events, and puts them in order. `stream_job` starts streaming queries; their state is the matter of the
room `streaming`. `source` is another way, for Parquet files that tasks read themselves.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("cerflow.spark needs PySpark: pip install 'cerflow[spark]'")

from cerflow.spark.batch import bad_records, explain, match
from cerflow.spark.frames.streams import streams
from cerflow.spark.job import RunResult, run
from cerflow.spark.source import CerflowSource, register
from cerflow.spark.stream_job import stream
from cerflow.spark.streaming.running import RunningStream, StreamStatus
from cerflow.stream_inputs import Input, Streams

__all__ = [
    "CerflowSource",
    "Input",
    "RunResult",
    "RunningStream",
    "StreamStatus",
    "Streams",
    "bad_records",
    "explain",
    "match",
    "register",
    "run",
    "stream",
    "streams",
]
