"""What `test_delta` runs: ``delta_stream.py FOLDER QUERY``, a stream of the files in FOLDER/input to a table of Delta.

Each micro-batch is written twice, as after a failure; the table is printed as lines of JSON.
"""

import sys
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from cerflow.spark import stream

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def main(folder, query):
    builder = SparkSession.Builder().master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    place = Path(folder)

    def write(matches, batch):
        writer = matches.write.format("delta").mode("append")
        for _ in range(2):
            writer.option("txnAppId", "found").option("txnVersion", batch).save(str(place / "table"))

    columns = "type string, t bigint, k bigint, v bigint, seq bigint"
    frame = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(place / "input"))
    roles = {"time": "t", "sequence": "seq", "delay": "400 milliseconds", "buckets": 2}
    running = stream(query, frame, write, checkpoint=str(place / "checkpoint"), available_now=True, **roles)
    running.await_termination()
    running.stop(flush=True)
    for line in spark.read.format("delta").load(str(place / "table")).toJSON().collect():
        print(line)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
