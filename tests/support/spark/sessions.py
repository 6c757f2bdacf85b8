"""A small session of Spark for tests."""

import tempfile
from contextlib import contextmanager

from cerflow.cli.spark.session import spark_session
from support.spark.kafka import connector_jars


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
