"""Workers on the driver's machine run its interpreter, without Spark."""

import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from cerflow.spark.worker import run_own_python


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
