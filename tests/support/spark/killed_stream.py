"""What `test_kills` runs as the driver: ``killed_stream.py FOLDER QUERY SINK``, a stream of the files in FOLDER/input.

It ends by itself when it has read all that is there. A query that fails is started again.
"""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from cerflow.spark import stream
from support.spark.kafka import connector_jars

TOPIC = "found"


def session():
    """A session that tries failed tasks again, as a cluster does."""
    builder = SparkSession.Builder().master("local[2,4]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": ",".join(connector_jars()),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def to_lines(place):
    """A function that writes each micro-batch into one file of JSON lines."""

    def write(matches, batch):
        rows = matches.toJSON().collect()
        unfinished = place / f".{batch}"
        unfinished.write_text("".join(f"{row}\n" for row in rows))
        unfinished.rename(place / str(batch))

    return write


def output(place, sink):
    """The arguments of a sink: ``files``, ``function``, or the address of a broker."""
    if sink == "files":
        return {"output": str(place / "output")}
    if sink == "function":
        (place / "lines").mkdir(exist_ok=True)
        return {"output": to_lines(place / "lines")}
    return {"format": "kafka", "options": {"kafka.bootstrap.servers": sink, "topic": TOPIC}}


def begun(spark, place, query, sink="files", **given):
    """The stream of the files in a folder, which goes on from its checkpoint."""
    columns = "type string, t bigint, k bigint, v bigint, seq bigint"
    frame = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(place / "input"))
    return stream(
        query,
        frame,
        **output(place, sink),
        checkpoint=str(place / "checkpoint"),
        time="t",
        sequence="seq",
        delay="400 milliseconds",
        buckets=4,
        match_ids=True,
        late="dead-letter",
        on_bad_record="dead-letter",
        dead_letter=str(place / "letters"),
        **given,
    )


def main(folder, query, sink):
    spark = session()
    place = Path(folder)
    while True:
        running = begun(spark, place, query, sink, available_now=True)
        try:
            running.await_termination()
            running.stop(flush=True)
        except StreamingQueryException:
            continue
        break
    (place / "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
