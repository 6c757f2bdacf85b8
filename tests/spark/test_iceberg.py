"""Tables of Iceberg: modes of jobs, and streams that take each match once, where its jar fits PySpark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import cerflow
from support.spark import file_streams
from support.spark.file_streams import disordered, events
from support.spark.servers import PACKAGE, ROOT, environment, skip_without_java

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY = "SELECT a.seq AS first, b.seq AS second WHERE (A AS a ; B AS b) PARTITION BY [k] WITHIN 1 SECOND"


@pytest.fixture(scope="module")
def jar():
    """The runtime of Iceberg for this PySpark, in the folder CERFLOW_ICEBERG, or ``.iceberg`` in the project."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    folder = Path(os.environ.get("CERFLOW_ICEBERG", ROOT / ".iceberg"))
    found = sorted(folder.glob(f"iceberg-spark-runtime-{version}_2.13-*.jar"))
    if not found:
        pytest.skip(
            f"there is no runtime of Iceberg for PySpark {version} in {folder}; docs/spark.md says which there are"
        )
    return found[-1]


@pytest.fixture(scope="module")
def told(tmp_path_factory, jar):
    """What `iceberg_job` has printed, and the matches in-process."""
    skip_without_java()
    folder = tmp_path_factory.mktemp("iceberg")
    table = events(120)
    pq.write_table(disordered(table, 400), folder / "events.parquet")
    script = Path(file_streams.__file__).with_name("iceberg_job.py")
    variables = environment(PYTHONPATH=PACKAGE.parent, PYSPARK_PYTHON=sys.executable)
    if "CERFLOW_CACHE_DIR" in os.environ:
        variables["CERFLOW_CACHE_DIR"] = os.environ["CERFLOW_CACHE_DIR"]
    command = [sys.executable, script, folder, jar, QUERY]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=variables, timeout=580)
    assert done.returncode == 0, done.stderr[-3000:]
    matches = cerflow.parse(QUERY).match(table, time="t", sequence="seq", positions=False).to_pylist()
    expected = sorted((m["k"], m["first"], m["second"]) for m in matches)
    return dict(map(json.loads, (line for line in done.stdout.splitlines() if line.startswith("[")))), expected


def in_order(rows):
    return sorted((row["k"], row["first"], row["second"]) for row in rows)


def test_jobs_write_to_tables_as_their_modes_say(told):
    found, expected = told
    of = {key: sum(k == key for k, *_ in expected) for key in (1, 2, 3)}
    assert all(of.values())
    assert found["written"] == len(expected)
    assert in_order(found["found"]) == in_order(found["found again"]) == expected
    assert found["ignored"] is False
    assert "'lake.db.found' already exists" in found["refused"]
    assert (found["replaced"], found["added"], found["other"]) == (of[1], of[2], of[3])
    assert (found["together"], found["only"]) == (len(expected) + of[2], of[3])


def test_a_stream_from_table_to_table_takes_each_match_once(told):
    found, expected = told
    if "streamed" not in found:
        pytest.skip("streams need PySpark 4.1")
    assert in_order(found["streamed"]) == expected
