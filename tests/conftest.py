"""Settings and fixtures for all tests; shared data and strategies are in `support`."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import cerflow
from cerflow.base.errors import InputError
from cerflow.language.predicates.registry import using
from support.runners import ENGINE_RUNNERS, EXAMPLES, RUNNERS, examples
from support.signals import let_programs_hear

settings.register_profile(
    "cerflow",
    examples(100),
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
#: The same examples every time, so that a change is judged by what it changes.
settings.register_profile("ci", settings.get_profile("cerflow"), derandomize=True, database=None)
# More examples than usual are other ones than those that pass every day.
settings.load_profile("cerflow" if EXAMPLES > 1 else "ci")


def pytest_configure():
    let_programs_hear()
    # Workers of tests have it; without it texts are as long as in files and pipes.
    os.environ.pop("COLUMNS", None)
    # For every Java that a test or a program of a test starts: its best compiler would take longer than it saves.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


#: Tests of Spark that start processes of their own instead of using the session of all.
_OWN_SPARK = ("test_kills", "test_cluster", "test_connect", "test_spark_interrupt", "benchmarks/test_spark")


def _session(nodeid):
    """Which of the processes with a session of Spark runs a test, None for any process."""
    if "spark" not in nodeid or any(name in nodeid for name in _OWN_SPARK):
        return None
    if "stream" in nodeid:
        return "spark and streams"
    return "spark and files" if "spark/placing" in nodeid or "spark/frames" in nodeid else "spark"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Tests with a session of Spark are slow. Where processes share the tests, begin with those that wait for it."""
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (_session(item.nodeid) or "~", "spark" not in item.nodeid))


def pytest_collection_finish():
    """What ten thousand tests consist of is there to the end: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Processes share the tests by file; all that use a session of Spark are like three files."""
    from xdist.scheduler import LoadFileScheduling

    class SparkTogether(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return _session(nodeid) or super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return SparkTogether(config, log)


def _params(runners):
    """The runners; `make test-fast` leaves the one that takes longest to random tests: a snapshot at every event."""
    slow = [pytest.mark.slow]
    return [pytest.param(run, id=name, marks=slow if name == "restored" else ()) for name, run in runners.items()]


@pytest.fixture(params=_params(RUNNERS))
def runner(request):
    """Each way of evaluating a query on a table: ``runner(query, table, **roles)`` gives the matches as dicts."""
    return request.param


@pytest.fixture(params=_params(ENGINE_RUNNERS))
def engine_runner(request):
    """Each way in which the engine evaluates a query on a table."""
    return request.param


_CHECKOUT = Path(__file__).resolve().parent.parent
#: What tools leave on purpose: caches, environments, coverage, and the files that tests of Kafka and Iceberg fetch; and
#: `artifacts`, which Spark 4.0 makes where it is started.
_KEPT = (
    "__pycache__",
    ".git",
    ".venv",
    ".coverage",
    ".hypothesis",
    ".kafka",
    ".iceberg",
    "demo-output",
    "bench-output",
    "artifacts",
)
_KEPT += (".pytest_cache", ".mypy_cache", ".ruff_cache", "build", "dist", "site")


def _files():
    """All files and empty folders in the checkout, apart from those of tools."""
    found = set()
    for folder, names, files in os.walk(_CHECKOUT):
        names[:] = [n for n in names if not n.startswith(_KEPT) and not n.endswith(".egg-info")]
        left = [n for n in files if not n.startswith(_KEPT) and not n.endswith(".so")]
        found.update(os.path.join(folder, name) for name in left or [""])
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind():
    """The tests write nothing into the checkout, not even what Git ignores, such as `spark-warehouse`."""
    before = _files()
    yield
    left = sorted(_files() - before)
    assert not left, f"tests left files in the checkout: {left[:10]}"


@pytest.fixture(scope="session")
def interrupt():
    """What handled an interrupt before there was a session of Spark."""
    return signal.getsignal(signal.SIGINT)


@pytest.fixture(scope="session")
def spark(interrupt, tmp_path_factory):
    """One Spark session for all tests of a process; the command line takes it, too."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    from support.spark.sessions import home_without_zips, small_session

    session = small_session()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPARK_HOME", str(home_without_zips(tmp_path_factory.mktemp("spark"))))
            entered = session.__enter__()
    except InputError as problem:
        pytest.skip(str(problem))
    yield entered
    session.__exit__(None, None, None)


@pytest.fixture
def predicate():
    """`cerflow.predicate`, with all that it registers forgotten after the test."""
    before = cerflow.registered_predicates()
    with using(before):
        yield cerflow.predicate
