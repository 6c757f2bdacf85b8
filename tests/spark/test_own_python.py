"""Workers on the driver's machine run its interpreter, without Spark."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from cerflow.base.errors import InputError
from cerflow.spark.worker import require_cerflow, run_own_python
from support.runners import only_deep
from support.spark.servers import PACKAGE, environment, python_without_cerflow, skip_without_java


class Context(SimpleNamespace):
    pythonExec = "python3"  # noqa: N815  (PySpark's name)

    def getConf(self):
        return self.settings


@pytest.mark.parametrize(
    ("master", "environment", "settings", "chosen"),
    [
        ("local[*]", {}, {}, sys.executable),
        ("local[2]", {}, {"spark.pyspark.python": "/opt/python"}, "/opt/python"),
        ("local", {"PYSPARK_PYTHON": "python3"}, {}, "python3"),
        ("spark://host:7077", {}, {}, "python3"),
    ],
)
def test_spark_gets_the_interpreter_of_a_local_driver(monkeypatch, master, environment, settings, chosen):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    context = Context(master=master, settings=settings)
    run_own_python(SimpleNamespace(_jvm=None, sparkContext=context))
    assert context.pythonExec == chosen


def test_spark_connect_is_left_alone():
    run_own_python(SimpleNamespace())
    require_cerflow(SimpleNamespace())


class Workers:
    """A context whose workers have some modules."""

    def __init__(self, *modules, master="spark://host:7077", python="python3"):
        self.modules, self.master, self.pythonExec, self.jobs = modules, master, python, 0

    def parallelize(self, names, slices):
        self.names = names
        return self

    def map(self, function):
        return self

    def collect(self):
        self.jobs += 1
        return [name in self.modules for name in self.names]


def test_workers_without_cerflow_are_refused_by_one_task():
    lacking, equipped = Workers(), Workers("cerflow")
    for _ in range(2):
        with pytest.raises(InputError, match="'python3', cannot import cerflow: install cerflow there"):
            require_cerflow(SimpleNamespace(_jvm=None, sparkContext=lacking))
        require_cerflow(SimpleNamespace(_jvm=None, sparkContext=equipped))
    assert (lacking.jobs, equipped.jobs) == (2, 1)
    own = Workers(master="local[*]", python=sys.executable)
    require_cerflow(SimpleNamespace(_jvm=None, sparkContext=own))
    assert own.jobs == 0


@only_deep
@pytest.mark.slow
@pytest.mark.long
def test_a_cluster_whose_python_lacks_cerflow_is_refused_at_once(tmp_path):
    skip_without_java()
    script = (
        "import cerflow.spark; from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local-cluster[1,1,1024]').config('spark.ui.enabled', 'false')"
        ".config('spark.executor.memory', '512m').getOrCreate()\n"
        "events = spark.createDataFrame([('A', 1), ('B', 2)], 'type string, t bigint')\n"
        "cerflow.spark.match('SELECT * WHERE A ; B', events, time='t')\n"
    )
    # The driver reads cerflow from where the workers do not look.
    script = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{script}"
    variables = environment(PYSPARK_PYTHON=python_without_cerflow(tmp_path / "bare"))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=600)
    assert "cannot import cerflow: install cerflow there" in done.stderr
    assert "Py4JJavaError" not in done.stderr
