"""What `test_kills` runs as the driver: ``killed_stream.py FOLDER QUERY SINK``, a stream of the files in FOLDER/input.

If the sink is a broker, the stream reads a topic there. It ends by itself when it has read all that is there. A query
that fails is started again.
"""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from cerflow.cli.spark.streaming import _events_in
from cerflow.spark import stream
from support.spark.kafka import connector_jars

GIVEN, TOPIC = "given", "found"
COLUMNS = "type string, t bigint, k bigint, v bigint, seq bigint"


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


def events(spark, place, sink):
    """The events, of which a micro-batch gets one file, or as many messages."""
    if sink in ("files", "function"):
        return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(place / "input"))
    options = {"kafka.bootstrap.servers": sink, "subscribe": GIVEN, "startingOffsets": "earliest"}
    messages = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="50").load()
    return _events_in(messages, COLUMNS, whole=True)


def begun(spark, place, query, sink="files", **given):
    """The stream, which goes on from its checkpoint."""
    return stream(
        query,
        events(spark, place, sink),
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
