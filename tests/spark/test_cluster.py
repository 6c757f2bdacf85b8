"""A standalone cluster of two workers: what happens to tasks, and the ways to bring cerflow to executors."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerflow
from cerflow.engine.kernels.base import library
from support.manual import blocks
from support.runners import EXAMPLES
from support.spark import servers
from support.spark.results import bag
from support.spark.servers import (
    HOST,
    PACKAGE,
    ROOT,
    built_wheel,
    environment,
    kept_kernels,
    python_without_cerflow,
    skip_without_java,
    spark_server,
    zipped_sources,
)
from support.spark.wheels import closure, make_wheels

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY k WITHIN 30 [t]"
MANUAL = ROOT / "docs" / "cluster.md"
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
def cluster(tmp_path_factory, cache):
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
            log = folder / f"{name}.log"
            servers.enter_context(
                spark_server(worker, log, "Successfully registered with master", CERFLOW_CACHE_DIR=cache)
            )
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
    # The driver's own Python may have cerflow; executors get this one's path, and nothing from PYTHONPATH.
    driver([sys.executable, JOB, cluster, shipped, events, folder, QUERY], python, CERFLOW_CACHE_DIR=cache)
    # The library came in the zip or was there: objects would show that an executor has compiled it.
    assert [file.name for file in cache.glob("kernels-*.so")] == [library.kept_path().name]
    assert not [*cache.glob("*.o")]
    return folder


def test_executors_have_cerflow_and_its_kernels_from_the_zip(job, python, cache):
    bare = subprocess.run([python, "-c", "import cerflow"], capture_output=True, text=True, env=environment())
    assert "No module named 'cerflow'" in bare.stderr
    seen = json.loads((job / "seen.json").read_text())
    assert len({s["folder"] for s in seen}) == 2
    assert all("cerflow.zip" in s["file"] for s in seen)
    assert {(s["kernels"], s["compiled"]) for s in seen} == {(str(cache / library.kept_path().name), True)}


@pytest.mark.parametrize("name", ["fails", "waits"])
def test_matches_are_those_in_process_whatever_happens_to_tasks(job, name, expected):
    found = pq.read_table(job / name)
    assert expected.num_rows > 100
    assert bag(found) == bag(expected)
    # Each attempt notes its trouble once for its task; several tasks had some.
    troubles = (job / f"{name}.log").read_text().splitlines()
    assert len(troubles) == len(set(troubles))
    assert len(troubles) > 1
    # Nobody waited for a task that never ends.
    assert float((job / f"{name}.seconds").read_text()) < 200


@pytest.fixture(scope="module")
def machine(tmp_path_factory, cluster, wheel):
    """A folder with the files that the manual names, and the variables for commands typed there.

    The home is empty, there is no network but wheels of what is installed here, and Spark is set up for a test.
    """
    if wheel is None:
        pytest.skip("Hatchling is not installed (it comes with the extra 'dev')")
    folder = tmp_path_factory.mktemp("machine")
    needed = closure(["numpy", "pyarrow", "lark", "protobuf", "typer", "rich"])
    shutil.copy(wheel, make_wheels(folder / "wheels", needed))
    for block in blocks(MANUAL):
        if block.title:
            (folder / block.title).write_text(block.text)
    settings = {"driver.host": HOST, "executor.memory": "512m", "sql.shuffle.partitions": 2, "ui.enabled": "false"}
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"spark.{k} {v}\n" for k, v in settings.items()))
    data = folder / "data"
    (data / "events").mkdir(parents=True)
    rows = [{"type": "ABC"[n % 3], "k": n % 7, "v": n * 13 % 29, "t": n} for n in range(2000)]
    pq.write_table(pa.Table.from_pylist(rows), data / "events" / "events.parquet", row_group_size=500)
    (data / "events.csv").write_text("type,t\n" + "".join(f"{row['type']},{row['t']}\n" for row in rows[:30]))
    return folder, {
        "HOME": folder,
        "CLUSTER": cluster,
        "DATA": data,
        "SPARK_HOME": Path(find_spec("pyspark").origin).parent,
        "SPARK_CONF_DIR": folder / "conf",
        "SPARK_LOG_DIR": folder / "logs",
        "SPARK_PID_DIR": folder,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PIP_NO_INDEX": 1,
        "PIP_FIND_LINKS": folder / "wheels",
        "PIP_NO_COMPILE": 1,
        "PIP_DISABLE_PIP_VERSION_CHECK": 1,
        # What is only for this test need not be small.
        "GZIP": "-1",
    }


@pytest.mark.deep
@pytest.mark.skipif(EXAMPLES < 1, reason="make test-deep types the manual's commands")
@pytest.mark.parametrize("section", ["Installed on executors", "A zip", "An archive", "Connect"])
def test_the_commands_of_the_manual_bring_cerflow_to_executors(machine, section):
    folder, variables = machine
    if section == "Connect" and find_spec("grpc") is None:
        pytest.skip("grpc is not installed (it comes with pyspark[connect], in the extra 'dev')")
    data, variables = folder / "data", environment(**variables)
    for name in ("found", "stream", "state"):
        shutil.rmtree(data / name, ignore_errors=True)
    lines = "\n".join(["set -e", *(block.text for block in blocks(MANUAL, section) if block.language == "sh")])
    try:
        done = subprocess.run(
            ["bash", "-c", lines], cwd=folder, capture_output=True, text=True, env=variables, timeout=600
        )
    finally:
        if section == "Connect":
            subprocess.run(
                [f"{variables['SPARK_HOME']}/sbin/stop-connect-server.sh"], env=variables, capture_output=True
            )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    query = re.search('query = "(.*)"', (folder / "job.py").read_text())[1]
    matches = cerflow.parse(query).match(pq.read_table(data / "events"), time="t").to_pylist()
    # From Connect nobody tells a stream that it ends: the watermark stays a millisecond after the last event.
    known = sum(match["detected_time"] < 1998 for match in matches) if section == "Connect" else len(matches)
    printed = f"match {len(matches)}\nrun {len(matches)}\nsource {len(matches)}\nstream {known}\n"
    assert printed in done.stdout
    assert known > 100
    # In the first 30 events each B follows all A before it: 1 + 2 + … + 10.
    counted = sum(json.loads(line)["n"] for line in done.stdout.splitlines() if line.startswith("{"))
    assert counted == (55 if section == "A zip" else 0)


def test_the_wheel_has_all_modules_and_data_and_the_kernels(wheel):
    if wheel is None:
        pytest.skip("Hatchling is not installed (it comes with the extra 'dev')")
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = PACKAGE.parent
    files = (file for file in sources.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    # The manual is among the sources elsewhere.
    assert names == {str(file.relative_to(sources)) for file in files} | {"cerflow/studio/language.md"}
    assert {"cerflow/py.typed", "cerflow/language/grammar/ceql.lark", "pyspark_cerflow/__init__.py"} <= names
    assert f"cerflow/engine/kernels/{library.library_name()}" in names
