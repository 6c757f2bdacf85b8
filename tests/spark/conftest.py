"""One Spark session for all tests of this room."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from cerflow.cli.spark.session import spark_session
from cerflow.errors import InputError


@pytest.fixture(scope="session")
def spark():
    settings = [
        ("spark.sql.shuffle.partitions", "3"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.driver.memory", "1g"),
    ]
    try:
        session = spark_session("local[2]", settings)
        entered = session.__enter__()
    except InputError as problem:
        pytest.skip(str(problem))
    yield entered
    session.__exit__(None, None, None)
