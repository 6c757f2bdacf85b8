"""One Spark session for all tests of this room."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from cerflow import limits
from cerflow.errors import InputError
from support.spark.sessions import small_session


@pytest.fixture(scope="session")
def spark():
    session = small_session()
    try:
        entered = session.__enter__()
    except InputError as problem:
        pytest.skip(str(problem))
    yield entered
    session.__exit__(None, None, None)


@pytest.fixture
def nothing_is_small(monkeypatch):
    """What is worth it for many events is done for few."""
    for name in ("SPARK_SMALL_BYTES", "SPARK_SMALL_EVENTS"):
        monkeypatch.setattr(limits, name, 0)
