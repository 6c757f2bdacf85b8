"""A small session of Spark for tests."""

import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from cerflow.cli.spark.session import spark_session
from support.spark.kafka import connector_jars


def home_without_zips(folder):
    """A home of Spark whose workers import PySpark from where it is installed.

    From the zip of Spark's own home Python compiles it anew for each stream: a second and a half, of the ten in which
    Spark wants to hear from it.
    """
    for entry in Path(find_spec("pyspark").origin).parent.iterdir():
        if entry.name != "python":
            (folder / entry.name).symlink_to(entry)
    return folder


@contextmanager
def small_session():
    """A session on two cores, to be entered; raises InputError without Spark or Java."""
    with tempfile.TemporaryDirectory() as warehouse:
        settings = [
            ("spark.sql.shuffle.partitions", "3"),
            ("spark.sql.warehouse.dir", warehouse),
            *([("spark.jars", ",".join(connector_jars()))] if connector_jars() else []),
        ]
        with spark_session("local[2]", settings) as session:
            yield session
