"""Queries on Spark: make a DataFrame of matches from a DataFrame of events.

Spark moves and orders the events; the recognisers of `cerflow.engine` run in its tasks. `batch` has the functions for
batches, `job` writes matches and bad records to files and counts them, and starts streaming queries. The room `frames`
prepares events as columns of DataFrames and leaves out irrelevant ones; `placing` decides which task gets which events,
and orders them. The room `streaming` keeps the state of streams. `source` is an alternative, for Parquet files that
tasks read themselves. `worker` prepares processes for tasks.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cerflow.base.later import imported_later

if find_spec("pyspark") is None:
    raise ImportError("cerflow.spark needs PySpark: pip install 'cerflow[spark]'")

if TYPE_CHECKING:
    from cerflow.api.stream_inputs import Input, Streams
    from cerflow.spark.batch import bad_records, explain, match
    from cerflow.spark.frames.streams import streams
    from cerflow.spark.job import RunResult, run, stream
    from cerflow.spark.source import CerflowSource, register
    from cerflow.spark.streaming.checkpoint import StreamStatus
    from cerflow.spark.streaming.running import RunningStream

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

# Tasks import modules of this room, and few of these.
__getattr__ = imported_later(
    __name__,
    {
        "CerflowSource": "cerflow.spark.source",
        "Input": "cerflow.api.stream_inputs",
        "RunResult": "cerflow.spark.job",
        "RunningStream": "cerflow.spark.streaming.running",
        "StreamStatus": "cerflow.spark.streaming.checkpoint",
        "Streams": "cerflow.api.stream_inputs",
        "bad_records": "cerflow.spark.batch",
        "explain": "cerflow.spark.batch",
        "match": "cerflow.spark.batch",
        "register": "cerflow.spark.source",
        "run": "cerflow.spark.job",
        "stream": "cerflow.spark.job",
        "streams": "cerflow.spark.frames.streams",
    },
)


def __dir__() -> list[str]:
    return [*__all__]
