"""What `test_kills` runs as the driver: ``killed_stream.py FOLDER QUERY``, a stream of the files in FOLDER/input.

It ends by itself when it has read all that is there, and a file ``flush`` tells it to flush.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from cerflow.spark import stream


def main(folder, query):
    builder = SparkSession.Builder().master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    place = Path(folder)
    columns = "type string, t bigint, k bigint, v bigint, seq bigint"
    frame = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(place / "input"))
    running = stream(
        query,
        frame,
        str(place / "output"),
        checkpoint=str(place / "checkpoint"),
        time="t",
        sequence="seq",
        delay="400 milliseconds",
        buckets=4,
        match_ids=True,
        available_now=True,
    )
    (place / "started").touch()
    running.await_termination()
    running.stop(flush=True)
    (place / "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
