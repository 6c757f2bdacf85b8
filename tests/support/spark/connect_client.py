"""What `test_connect` runs as the client of a Connect server: ``connect_client.py URL ZIP EVENTS OUTPUT QUERY``."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from cerflow.spark import bad_records, match


def main(url, zipped, events, output, query):
    spark = SparkSession.builder.remote(url).getOrCreate()
    spark.addArtifacts(zipped, pyfile=True)
    folder, frame = Path(output), spark.read.parquet(events)
    usable = frame.filter("type IS NOT NULL")
    roles = {"time": "t", "sequence": "seq"}
    tables = {
        "positions": match(query, usable, positions=True, **roles),
        "skipped": match(query, frame, on_bad_record="skip", **roles),
        "whole": match(query.replace("PARTITION BY k", ""), usable, **roles),
        "bad": bad_records(frame, time="t"),
    }
    for name, found in tables.items():
        found.write.parquet(str(folder / name))
    rates = spark.readStream.format("rate").load()
    stream = rates.selectExpr("'A' AS type", *(f"value AS {name}" for name in ("k", "t", "v", "seq")))
    wrong = {
        "record": lambda: match(query, frame, **roles).collect(),
        "syntax": lambda: match("SELECT * WHERE", frame),
        "column": lambda: match(query, frame, type="typ"),
        "query": lambda: match("SELECT * WHERE A PARTITION BY kk", frame),
        "stream": lambda: match(query, stream, **roles),
        "frame": lambda: match(query, frame.toArrow()),
    }
    said = {}
    for name, action in wrong.items():
        try:
            action()
        except Exception as error:
            said[name] = [type(error).__name__, str(error)]
    (folder / "errors.json").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
