"""Settings for tests on Spark; their session is in the `conftest` of all tests."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from cerflow.base import limits


@pytest.fixture
def nothing_is_small(monkeypatch):
    """What is worth it for many events is done for few."""
    for name in ("SPARK_SMALL_BYTES", "SPARK_SMALL_EVENTS"):
        monkeypatch.setattr(limits, name, 0)
