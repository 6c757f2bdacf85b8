"""What `test_iceberg` runs: ``iceberg_job.py FOLDER JAR QUERY``, jobs and a stream with tables in FOLDER/lake.

The events are FOLDER/events.parquet. Prints lines of JSON: a name, and what was found.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from cerflow.base.errors import InputError
from cerflow.spark import run, stream

CATALOG = "spark.sql.catalog.lake"
MERGE = """MERGE INTO lake.db.streamed USING new ON streamed.match_id = new.match_id
    WHEN NOT MATCHED THEN INSERT *"""


def main(folder, jar, query):
    place = Path(folder)
    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{CATALOG}.type": "hadoop",
        f"{CATALOG}.warehouse": str(place / "lake"),
    }
    builder = SparkSession.Builder().master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def tell(name, found):
        print(json.dumps([name, found]), flush=True)

    def rows(table):
        return [row.asDict() for row in spark.table(table).select("k", "first", "second").collect()]

    roles = {"time": "t", "sequence": "seq"}
    spark.read.parquet(str(place / "events.parquet")).writeTo("lake.db.events").using("iceberg").create()
    events = spark.table("lake.db.events")
    job = {"output": "lake.db.found", "format": "iceberg", "partition_by": ["k"], **roles}
    tell("written", run(query, events, **job).matches)
    tell("found", rows("lake.db.found"))
    tell("ignored", run(query, events, mode="ignore", **job).written)
    try:
        run(query, events, **job)
    except InputError as error:
        tell("refused", str(error))
    tell("replaced", run(query, events.filter("k = 1"), mode="overwrite-partitions", **job).matches)
    tell("found again", rows("lake.db.found"))
    tell("added", run(query, events.filter("k = 2"), mode="append", **job).matches)
    tell("together", len(rows("lake.db.found")))
    tell("other", run(query, events.filter("k = 3"), mode="overwrite", **job).matches)
    tell("only", len(rows("lake.db.found")))
    if hasattr(events.groupBy(), "transformWithState"):
        stream_to_table(spark, place, query, roles)
        # Each session keeps what it knows of tables, and the stream writes in one of its own.
        spark.sql("REFRESH TABLE lake.db.streamed")
        tell("streamed", rows("lake.db.streamed"))
    spark.stop()


def stream_to_table(spark, place, query, roles):
    """A stream from a table to a table, each micro-batch of which is written twice, as after a failure."""

    def write(matches, batch):
        table = "lake.db.streamed"
        if not spark.catalog.tableExists(table):
            matches.limit(0).writeTo(table).using("iceberg").create()
        matches.createOrReplaceTempView("new")
        for _ in range(2):
            matches.sparkSession.sql(MERGE)

    coming = spark.readStream.option("streaming-max-rows-per-micro-batch", 40).table("lake.db.events")
    running = stream(
        query,
        coming,
        write,
        checkpoint=str(place / "checkpoint"),
        match_ids=True,
        delay="400 milliseconds",
        buckets=2,
        available_now=True,
        **roles,
    )
    running.await_termination()
    running.stop(flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
