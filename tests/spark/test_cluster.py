"""A standalone cluster of two workers, whose Python has cerflow only as a zip that the application brings along."""

import json
import shutil
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerflow
from cerflow.engine.kernel_cache import kernels_stamp
from support.spark import servers
from support.spark.results import bag
from support.spark.servers import (
    HOST,
    PACKAGE,
    built_wheel,
    environment,
    kept_kernels,
    python_without_cerflow,
    skip_without_java,
    spark_server,
    zipped_sources,
)

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY k WITHIN 30 [t]"
JOB = Path(servers.__file__).with_name("cluster_job.py")


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Out of order, with ties in time that only ``seq`` orders."""
    rows = []
    for number in range(4000):
        place = number * 37 % 4000
        rows.append({"type": "ABC"[place % 3], "k": place % 7, "v": place * 13 % 29, "t": place // 3, "seq": place})
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1000)
    return path


@pytest.fixture(scope="module")
def expected(events):
    table = pq.read_table(events)
    return cerflow.parse(QUERY).match(table, time="t", sequence="seq", positions=True).to_arrow()


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return python_without_cerflow(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory, wheel):
    """The wheel under a name that Spark takes for a zip; without Hatchling, what would be in it."""
    path = tmp_path_factory.mktemp("shipped") / "cerflow.zip"
    return zipped_sources(path) if wheel is None else Path(shutil.copy(wheel, path))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, python):
    """The URL of a master with two workers of one core each."""
    skip_without_java()
    folder = tmp_path_factory.mktemp("cluster")
    deploy = "org.apache.spark.deploy"
    with ExitStack() as servers:
        master = [f"{deploy}.master.Master", "--host", HOST, "--port", 0, "--webui-port", 0]
        url = servers.enter_context(spark_server(master, folder / "master.log", r"spark://[\d.]+:\d+")).group()
        # Spark runs a second attempt at a task that is still running on another host only.
        for name, host in (("one", HOST), ("two", "127.0.0.2")):
            options = ["--cores", 1, "--memory", "1g", "--host", host, "--webui-port", 0, "--work-dir", folder / name]
            worker = [f"{deploy}.worker.Worker", *options, url]
            servers.enter_context(spark_server(worker, folder / f"{name}.log", "Successfully registered with master"))
        yield url


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return kept_kernels(tmp_path_factory.mktemp("cache"))


def driver(command, python, **variables):
    """Run a driver, which has cerflow, while PYSPARK_PYTHON names the executors' Python."""
    variables = environment(PYTHONPATH=PACKAGE.parent, PYSPARK_PYTHON=python, **variables)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=variables, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def job(tmp_path_factory, cluster, python, shipped, cache, events):
    """The folder that `cluster_job` has written."""
    folder = tmp_path_factory.mktemp("job")
    before = {file: file.stat().st_mtime_ns for file in cache.glob("*/*.nb?")}
    # The driver's own Python may have cerflow; executors get this one's path, and nothing from PYTHONPATH.
    driver([sys.executable, JOB, cluster, shipped, events, folder, QUERY], python, CERFLOW_CACHE_DIR=cache)
    assert {file: file.stat().st_mtime_ns for file in cache.glob("*/*.nb?")} == before
    return folder


def test_executors_have_cerflow_from_the_zip_and_kernels_from_the_cache(job, python, cache):
    bare = subprocess.run([python, "-c", "import cerflow"], capture_output=True, text=True, env=environment())
    assert "No module named 'cerflow'" in bare.stderr
    seen = json.loads((job / "seen.json").read_text())
    assert len({s["folder"] for s in seen}) == 2
    assert all("cerflow.zip" in s["file"] for s in seen)
    assert {(s["kernels"], s["compiled"]) for s in seen} == {(str(cache / f"kernels-{kernels_stamp()}"), True)}


@pytest.mark.parametrize("name", ["plain", "fails", "waits"])
def test_matches_are_those_in_process_whatever_happens_to_tasks(job, name, expected):
    found = pq.read_table(job / name)
    assert expected.num_rows > 100
    assert bag(found) == bag(expected)
    trouble = job / f"{name}.log"
    # Each attempt notes its trouble once for its task; several tasks had some.
    troubles = trouble.read_text().split("\n")[:-1] if trouble.exists() else []
    assert len(troubles) == len(set(troubles))
    assert (len(troubles) > 1) == (name != "plain")
    # Nobody waited for a task that never ends.
    assert float((job / f"{name}.seconds").read_text()) < 200


def test_the_command_runs_on_the_cluster(tmp_path, cluster, python, shipped, cache, events, expected):
    query, output = tmp_path / "query.ceql", tmp_path / "matches.parquet"
    query.write_text(QUERY)
    settings = {
        "spark.submit.pyFiles": shipped,
        "spark.executorEnv.CERFLOW_CACHE_DIR": cache,
        "spark.executor.memory": "512m",
        "spark.driver.host": HOST,
    }
    command = [sys.executable, "-c", "from cerflow.cli import main; main()", "run", query, "--input", events]
    command += ["--time-column", "t", "--sequence-column", "seq", "--positions", "--output", output]
    command += ["--master", cluster]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    driver(command, python)
    assert bag(pq.read_table(output)) == bag(expected)


def test_the_wheel_is_pure_python_with_all_its_data(wheel):
    if wheel is None:
        pytest.skip("Hatchling is not installed (it comes with the extra 'dev')")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = PACKAGE.parent
    files = (file for file in sources.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    assert names == {str(file.relative_to(sources)) for file in files}
    assert {"cerflow/py.typed", "cerflow/language/ceql.lark", "pyspark_cerflow/__init__.py"} <= names
