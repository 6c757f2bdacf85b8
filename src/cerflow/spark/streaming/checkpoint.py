"""The folder ``cerflow`` in the checkpoint of a streaming query, beside Spark's own files.

``query.json`` describes the query, ``status.json`` and ``metrics.prom`` (for Prometheus) say how far it has come, the
files in ``clock`` hold times up to which the stream is known to be complete, and ``times.json`` has the longest delay
so far (milliseconds) and the watermark to which the last flush led (an instant).
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cerflow.errors import InputError
from cerflow.spark.streaming.instants import watermark_at

__all__ = ["METRICS", "QUERY", "STATUS", "TIMES", "Checkpoint", "check_unchanged"]

QUERY, STATUS, METRICS, TIMES = "query.json", "status.json", "metrics.prom", "times.json"


class Checkpoint:
    """The folder of a checkpoint on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self.path = path
        self._files = self._path(path).getFileSystem(spark._jsc.hadoopConfiguration())

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(path)

    def _own(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/cerflow/{name}"

    def read(self, name: str) -> dict[str, Any] | None:
        """The contents of a file of JSON; None if it is not there."""
        path = self._path(self._own(name))
        if not self._files.exists(path):
            return None
        found: dict[str, Any] = json.loads(self._text(path))
        return found

    def _text(self, path: Any) -> str:
        opened = self._files.open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))
        finally:
            opened.close()

    def write(self, name: str, contents: dict[str, Any]) -> None:
        """Write a file of JSON; readers see it as a whole or not at all."""
        self.write_text(name, json.dumps(contents, indent=2, ensure_ascii=False))

    def write_text(self, name: str, text: str) -> None:
        """Write a file as `write` does."""
        path, unfinished = (self._path(self._own(n)) for n in (name, f".unfinished-{name.replace('/', '-')}"))
        opened = self._files.create(unfinished, True)
        try:
            opened.write(bytearray(text.encode()))
        finally:
            opened.close()
        self._files.mkdirs(path.getParent())
        # Renaming does not replace a file, and nobody else writes here.
        self._files.delete(path, False)
        if not self._files.rename(unfinished, path):
            raise InputError(f"cannot write '{path.toString()}'")

    @property
    def clock(self) -> DataFrame:
        """The times in the folder ``clock`` as a stream, which removes them when they are no more needed."""
        folder = self._own("clock")
        self._files.mkdirs(self._path(folder))
        reader = self._spark.readStream.schema("instant bigint").option("multiLine", True)
        return reader.option("cleanSource", "delete").json(folder)

    def tick(self, instant: int) -> None:
        """Let the stream know that it is complete up to an instant (microseconds), at the delay after it."""
        self.write(f"clock/{instant}.json", {"instant": instant})

    def watermark(self) -> int:
        """The instant of the watermark that the last micro-batch led to; `BEGINNING` before the first."""
        # A stream may end between the end of a micro-batch and the plan of the next one, or amid a micro-batch.
        found = (self._last("offsets", "batchWatermarkMs"), self._last("commits", "nextBatchWatermarkMs"))
        return watermark_at(max(found))

    def _last(self, log: str, name: str) -> int:
        """A number in the last entry of one of Spark's logs, 0 if there is none."""
        folder = self._path(f"{self.path.rstrip('/')}/{log}")
        if not self._files.exists(folder):
            return 0
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        batches = [int(name) for name in names if name.isdigit()]
        if not batches:
            return 0
        # The second line is Spark's description of the batch.
        _, described, *_ = self._text(self._path(f"{folder.toString()}/{max(batches)}")).splitlines()
        return int(json.loads(described)[name])


def check_unchanged(checkpoint: Checkpoint, description: dict[str, Any]) -> None:
    """Note the description of a query in a checkpoint, or compare it with the noted one; raises `InputError`."""
    noted = checkpoint.read(QUERY)
    if noted is None:
        checkpoint.write(QUERY, description)
        return
    if noted == description:
        return
    before, now = (json.dumps(d, indent=1, ensure_ascii=False).splitlines() for d in (noted, description))
    difference = "\n".join(difflib.unified_diff(before, now, "checkpoint", "now", lineterm="", n=0))
    raise InputError(
        f"the checkpoint '{checkpoint.path}' is of another query, other columns or other buckets; take a new one, or "
        f"change it back:\n{difference}"
    )
