"""A client of Spark Connect: no JVM beside it, the server plans and runs."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerflow
from support.spark import servers
from support.spark.results import bag
from support.spark.servers import (
    PACKAGE,
    environment,
    free_port,
    kept_kernels,
    python_without_cerflow,
    skip_without_java,
    spark_server,
    zipped_sources,
)

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY k WITHIN 30 [t]"
CLIENT = Path(servers.__file__).with_name("connect_client.py")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def events():
    numbers = range(900)
    kinds = [None if n % 50 == 7 else "ABC"[n % 3] for n in numbers]
    columns = {"type": kinds, "k": [n % 7 for n in numbers], "v": [n * 13 % 29 for n in numbers]}
    return pa.table({**columns, "t": [n // 3 for n in numbers], "seq": list(numbers)})


@pytest.fixture(scope="module")
def answered(tmp_path_factory, events):
    """The folder that `connect_client` has written."""
    for module in ("grpc", "google.protobuf", "pandas"):
        if find_spec(module.split(".")[0]) is None:
            pytest.skip(f"{module} is not installed (it comes with pyspark[connect], in the extra 'dev')")
    skip_without_java()
    folder = tmp_path_factory.mktemp("connect")
    pq.write_table(events, folder / "events.parquet")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 3,
    }
    arguments = ["--master", "local[2]", "--class", SERVER]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    arguments.append("spark-internal")
    # The server's Python has cerflow only from its client.
    variables = {"PYSPARK_PYTHON": python_without_cerflow(folder), "CERFLOW_CACHE_DIR": kept_kernels(folder / "cache")}
    zipped = zipped_sources(folder / "cerflow.zip")
    started = "Spark Connect server started"
    with spark_server(arguments, folder / "server.log", started, script="spark-submit", **variables):
        command = [sys.executable, CLIENT, f"sc://localhost:{port}", zipped, folder / "events.parquet", folder, QUERY]
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=PACKAGE.parent),
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("name", ["positions", "skipped", "whole"])
def test_matches_are_those_in_process(answered, events, name):
    usable = events.filter(pa.compute.is_valid(events.column("type")))
    query = QUERY.replace("PARTITION BY k", "") if name == "whole" else QUERY
    expected = cerflow.parse(query).match(usable, time="t", sequence="seq", positions=name == "positions").to_arrow()
    assert expected.num_rows > 100
    assert bag(pq.read_table(answered / name)) == bag(expected)


def test_bad_records_are_given(answered, events):
    found = pq.read_table(answered / "bad")
    assert set(found.column("reason").to_pylist()) == {"no event type in 'type'"}
    bad = events.filter(pa.compute.is_null(events.column("type")))
    assert sorted(found.column("seq").to_pylist()) == bad.column("seq").to_pylist() != []


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("record", "PythonException", "BadRecordError: row {type: null, "),
        ("syntax", "QuerySyntaxError", "line 1"),
        ("column", "InputError", "did you mean 'type'"),
        ("query", "QueryError", "kk"),
        ("stream", "InputError", "state store"),
        ("frame", "InputError", "not a Spark DataFrame"),
    ],
)
def test_errors_are_those_of_other_sessions(answered, name, error, says):
    kind, text = json.loads((answered / "errors.json").read_text())[name]
    assert kind == error
    assert says in text
