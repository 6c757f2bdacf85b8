"""What `test_cluster` runs as the driver of an application: ``cluster_job.py MASTER ZIP EVENTS OUTPUT QUERY``.

The folder OUTPUT gets a folder of Parquet files for each way in which the query is run, and ``seen.json``: what the
executors saw.
"""

import json
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.default.parallelism": "2",
    # Both executors are there before the first job.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "100s",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # Several tasks, so that some are done when others are slow.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "2",
    "spark.speculation.minTaskRuntime": "200ms",
}
#: Longer than all the rest takes; a task that is given up is killed long before.
ENDLESS = 250.0


def where(batches):
    """What an executor imports, and where it keeps its kernels."""
    import cerflow
    from cerflow.engine.kernels.base import library

    for _ in batches:
        seen = {
            "file": cerflow.__file__,
            "kernels": str(library.kept_path()),
            "compiled": library.find_library() is not None,
            "folder": os.getcwd(),
        }
        yield pa.RecordBatch.from_pylist([{"seen": json.dumps(seen)}])


class Troubled:
    """Passes batches on, but the first attempt at each task fails, or never ends, after its first batch."""

    def __init__(self, log, trouble):
        self.log, self.trouble = log, trouble

    def __call__(self, batches):
        context = TaskContext.get()
        for batch in batches:
            yield batch
            if context.attemptNumber() == 0:
                self.note(context)
                if self.trouble == "fails":
                    raise RuntimeError("the first attempt fails")
                if context.partitionId() == 1:
                    time.sleep(ENDLESS)

    def note(self, context):
        with open(self.log, "a") as file:
            file.write(f"{context.stageId()} {context.partitionId()}\n")


def main(master, zipped, events, output, query):
    builder = SparkSession.Builder().master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.executorEnv.CERFLOW_CACHE_DIR", os.environ["CERFLOW_CACHE_DIR"]).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(zipped)
    from cerflow.spark import match

    folder = Path(output)
    frame = spark.read.parquet(events)
    # Tasks after a barrier start together, so each executor has one.
    seen = spark.range(16).repartition(2).mapInArrow(where, "seen string", barrier=True).collect()
    (folder / "seen.json").write_text(json.dumps([json.loads(row["seen"]) for row in seen]))

    def run(name, before=None, after=None):
        given = frame if before is None else frame.repartition(2).mapInArrow(before, frame.schema)
        found = match(query, given, time="t", sequence="seq", positions=True)
        found = found if after is None else found.mapInArrow(after, found.schema)
        begin = time.monotonic()
        found.write.parquet(str(folder / name))
        (folder / f"{name}.seconds").write_text(str(time.monotonic() - begin))

    fails = Troubled(str(folder / "fails.log"), "fails")
    run("fails", before=fails, after=fails)
    run("waits", after=Troubled(str(folder / "waits.log"), "waits"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
