"""Settings and fixtures for all tests; shared data and strategies are in `support`."""

import pytest
from hypothesis import HealthCheck, settings

import cerflow
from cerflow.predicates.registry import using
from support.runners import ENGINE_RUNNERS, EXAMPLES, RUNNERS, examples

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


#: Tests of Spark that start processes of their own instead of using the session of all.
_OWN_SPARK = ("test_kills", "test_cluster", "test_connect", "test_spark_interrupt", "benchmarks/test_spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Processes share the tests by file; those that use Spark's session go to one process, which starts first.

    They take longest, and a second session would cost as much processor time and memory again.
    """
    from xdist.scheduler import LoadFileScheduling

    class SparkTogether(LoadFileScheduling):
        def _split_scope(self, nodeid):
            uses_session = "spark" in nodeid and not any(name in nodeid for name in _OWN_SPARK)
            return "spark" if uses_session else super()._split_scope(nodeid)

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


@pytest.fixture
def predicate():
    """`cerflow.predicate`, with all that it registers forgotten after the test."""
    before = cerflow.registered_predicates()
    with using(before):
        yield cerflow.predicate
