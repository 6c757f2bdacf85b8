"""Queries on Spark: make a DataFrame of matches from a DataFrame of events.

Spark moves and orders the events; the recognisers of `cerflow.engine` run in its tasks. `batch` has the functions for
batches, `job` writes matches and bad records to files and counts them, and starts streaming queries. The room `frames`
prepares events as columns of DataFrames and leaves out irrelevant ones; `placing` decides which task gets which events,
and orders them. The room `streaming` keeps the state of streams. `source` is an alternative, for Parquet files that
tasks read themselves. `worker` prepares processes for tasks.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cerflow.base import imported_later

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

_HOMES = {
    "cerflow.api.stream_inputs": ("Input", "Streams"),
    "cerflow.spark.batch": ("bad_records", "explain", "match"),
    "cerflow.spark.frames.streams": ("streams",),
    "cerflow.spark.job": ("RunResult", "run", "stream"),
    "cerflow.spark.source": ("CerflowSource", "register"),
    "cerflow.spark.streaming.checkpoint": ("StreamStatus",),
    "cerflow.spark.streaming.running": ("RunningStream",),
}
# Tasks import modules of this room, and few of these.
__getattr__ = imported_later(__name__, {name: module for module, names in _HOMES.items() for name in names})


def __dir__() -> list[str]:
    return [*__all__]
