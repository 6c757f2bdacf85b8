"""A small session of Spark for tests."""

from cerflow.cli.spark.session import spark_session
from support.spark.kafka import connector_jars


def small_session():
    """A session on two cores, to be entered; raises InputError without Spark or Java."""
    return spark_session(
        "local[2]",
        [
            ("spark.sql.shuffle.partitions", "3"),
            *([("spark.jars", ",".join(connector_jars()))] if connector_jars() else []),
        ],
    )
