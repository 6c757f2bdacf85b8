"""A session with the state store that streams need, and folders of files as streams."""

import pytest

from cerflow.spark.streaming import matching
from support.spark.file_streams import FileStream


@pytest.fixture(scope="module")
def spark(spark):
    """The session with the state store that streams need."""
    name, provider = matching.PROVIDER
    spark.conf.set(name, provider)
    yield spark
    spark.conf.unset(name)


@pytest.fixture
def stream(spark, tmp_path):
    return FileStream(spark, tmp_path)
