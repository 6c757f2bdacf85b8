"""A table of Delta takes each micro-batch once, where Delta's package fits PySpark."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from packaging.requirements import Requirement

import cerflow
from support.spark import file_streams
from support.spark.file_streams import disordered, events
from support.spark.servers import skip_without_java

QUERY = """SELECT a.seq AS first, b.seq AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v
    PARTITION BY [k] WITHIN 1 SECOND"""


def skip_without_delta():
    version = pyspark.__version__
    try:
        needs = map(Requirement, requires("delta-spark") or [])
    except PackageNotFoundError:
        pytest.skip(f"delta-spark is not installed; its version 4.4.1 fits PySpark 4.2 at most, and this is {version}")
    for need in needs:
        if need.name == "pyspark" and version not in need.specifier:
            pytest.skip(f"delta-spark needs {need}, and this is PySpark {version}")


@pytest.mark.slow
def test_a_table_of_delta_takes_each_micro_batch_once(tmp_path):
    skip_without_java()
    skip_without_delta()
    table = events(90)
    coming = disordered(table, 400)
    (tmp_path / "input").mkdir()
    for number in range(3):
        place = tmp_path / "input" / f"{number}.parquet"
        pq.write_table(coming.slice(30 * number, 30), place)
        # Spark reads the oldest file first.
        os.utime(place, (1000 + number, 1000 + number))
    support = Path(file_streams.__file__).parent
    path = os.pathsep.join([str(support.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, support / "delta_stream.py", tmp_path, QUERY],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    expected = cerflow.parse(QUERY).match(table, time="t", sequence="seq", positions=False).to_pylist()
    pairs = [Counter((row["first"], row["second"]) for row in rows) for rows in (found, expected)]
    assert pairs[0] == pairs[1]
    assert len(expected) > 10
