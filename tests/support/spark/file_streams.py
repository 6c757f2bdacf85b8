"""Events that come as files in a folder, one for each micro-batch."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

from cerflow.base.errors import InputError

PAIRS = "SELECT *, b.v - a.v AS rise WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 1 SECOND"


def events(count, seed=1, begin=1000):
    draw = random.Random(seed)
    columns = {
        "type": [draw.choice("ABC") for _ in range(count)],
        "t": [begin + 100 * place // 3 for place in range(count)],
        "k": [draw.randrange(6) or None for _ in range(count)],
        "v": [draw.randrange(50) for _ in range(count)],
        "seq": list(range(count)),
    }
    return pa.table(columns)


def disordered(table, disorder, seed=2):
    """The rows as they may come, none more than ``disorder`` after a later one; after them one that releases all."""
    draw = random.Random(seed)
    times = table.column("t").to_pylist()
    order = sorted(range(len(times)), key=lambda k: times[k] + draw.randrange(disorder + 1))
    return table.take(order)


#: No condition asks for it, but it moves the watermark.
LAST = pa.table({"type": ["Z"], "t": [100_000], "k": pa.array([None], pa.int64()), "v": [0], "seq": [10_000]})


def patiently(attempt):
    """What an attempt at a stream gives, which goes on where it was if Python did not start in Spark's ten seconds."""
    try:
        return attempt()
    except (StreamingQueryException, InputError) as error:
        if "failed to connect back" not in str(error):
            raise
        return attempt()


class FileStream:
    """A folder of Parquet files as a stream, one file for each micro-batch."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.written = spark, folder, 0
        (folder / "input").mkdir()

    def add(self, table):
        pq.write_table(table, self.folder / "input" / f"{self.written:04}.parquet")
        self.written += 1
        self.schema = self.spark.createDataFrame(table.slice(0, 1)).schema
        return self

    def frame(self):
        source = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return source.option("latestFirst", "false").parquet(str(self.folder / "input"))

    def run(self, matches):
        """Process all that is there; gives the matches of this run and those before, and Spark's reports."""
        path = str(self.folder / "output")
        writer = matches.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))

        def ended():
            query = writer.start(path)
            query.awaitTermination()
            return query.recentProgress

        progress = patiently(ended)
        return self.spark.read.parquet(path).toArrow(), progress
