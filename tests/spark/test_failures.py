"""What users read of errors of Spark: all messages whole, without stacks; errors of cerflow as what they were."""

import pytest

from cerflow.base.errors import BadRecordError, InputError, PredicateError
from cerflow.spark.failures import as_cerflow_error, messages, own_error, own_errors_raised

TASK = """An error occurred while calling o1751.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 17.0 failed 4 times, most recent \
failure: Lost task 1.3 in stage 17.0 (TID 19) (10.0.0.2 executor 1): org.apache.spark.api.python.PythonException: \
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/some/worker.py", line 2044, in main
    process()
    ~~~~~~~^^
%s
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
\t... 21 more

Driver stacktrace:
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/some/worker.py", line 2044, in main
    process()
%s
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
STREAM = """[STREAM_FAILED] Query [id = 19b1, runId = 3d72] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/some/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
py4j.protocol.Py4JJavaError: %s
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 19b1, runId = 3d72]
Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, [checkpointLocation=/cp]
"""


def in_task(message):
    return TASK % (message, message)


@pytest.mark.parametrize("around", [str, lambda text: STREAM % text])
@pytest.mark.parametrize(
    "message",
    [
        "ModuleNotFoundError: No module named 'typer'",
        "ValueError: the first line,\n\nand the way out in the third",
    ],
)
def test_messages_of_tasks_are_whole(around, message):
    assert messages(around(in_task(message))) == [message]
    assert str(as_cerflow_error(around(in_task(message)))).startswith(f"Spark failed: {message}")
    assert own_error(around(in_task(message))) is None


def test_causes_are_told_and_wrappers_are_not():
    text = """org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f.  \
SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:920)
Caused by: java.lang.RuntimeException: f is not a Parquet file.
Expected magic number at tail
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:601)
Caused by: java.io.EOFException
\t... 25 more
Caused by: java.io.IOException: No space left on device
\t... 26 more
"""
    expected = [
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file f.",
        "RuntimeException: f is not a Parquet file.\nExpected magic number at tail",
        "IOException: No space left on device",
    ]
    assert messages(text) == messages(STREAM % text) == expected
    assert str(as_cerflow_error(text)).startswith("Spark failed: " + "\n".join(expected))


def test_plans_behind_messages_are_left_out():
    text = (
        "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n+- Local"
    )
    assert messages(text) == ["[UNRESOLVED_COLUMN] A column `x` cannot be resolved."]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("ModuleNotFoundError: No module named 'cerflow'", "The Python that PYSPARK_PYTHON names lacks this"),
        ("ImportError: cannot import name 'descriptor' from 'google.protobuf' (unknown location)", "lacks this"),
        ('java.io.IOException: Cannot run program "./environment/bin/python": error=2', "a Python on executors and"),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).",
            "raise spark.executor.memory",
        ),
    ],
)
def test_ways_out_of_the_setting_of_a_cluster(message, says):
    said = str(as_cerflow_error(message)).splitlines()
    assert len(said) == 2
    assert says in said[1]


@pytest.mark.parametrize("text", ["", "java.io.EOFException"])
def test_an_error_without_a_message_is_named(text):
    said = str(as_cerflow_error(RuntimeError(text)))
    assert said == f"Spark failed: {'EOFException' if text else 'its only message is RuntimeError'}"


def test_errors_of_cerflow_are_raised_as_what_they_were():
    bad = "row {name: 'a: }: b', t: 2}: no event type in 'type'"
    found = own_error(STREAM % in_task(f"cerflow.base.errors.BadRecordError: {bad}"))
    assert isinstance(found, BadRecordError)
    assert (found.row, found.reason) == ("{name: 'a: }: b', t: 2}", "no event type in 'type'")
    assert str(found) == bad
    # The last one is what the task raised; what comes before is its cause.
    chain = "cerflow.base.errors.InputError: one\n\n"
    chain += "The above exception was the direct cause of the following exception:\n\n"
    chain += 'Traceback (most recent call last):\n  File "f", line 1, in g\n    h()\n'
    chain += "cerflow.base.errors.PredicateError: 'p' failed:\ntwo"
    found = own_error(in_task(chain))
    assert isinstance(found, PredicateError)
    assert str(found) == "'p' failed:\ntwo"
    with pytest.raises(PredicateError, match="two"), own_errors_raised():
        raise RuntimeError(in_task(chain))


def test_other_errors_pass_through():
    with pytest.raises(RuntimeError, match="typer"), own_errors_raised():
        raise RuntimeError(in_task("ModuleNotFoundError: No module named 'typer'"))
    given = InputError("cerflow.base.errors.BadRecordError: row 1: quoted")
    with pytest.raises(InputError) as raised, own_errors_raised():
        raise given
    assert raised.value is given


REMEDIES = [
    ("java.io.IOException: No space left on device", "Free space on the disk"),
    ("java.lang.IllegalArgumentException: CSV header does not conform to the schema.", "in their order"),
    ("[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming jobs detected for 3.", "Another process uses this checkpoint"),
    ("java.io.FileNotFoundException: File file:/c/state/0/1/3.changelog does not exist", "--set-back"),
    ("[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error: Column: [v]", "ignoreCorruptFiles"),
    ("org.apache.spark.SparkException: Python worker failed to connect back.", "start the stream again"),
    ("java.lang.AssertionError: assertion failed: offsets are lost", "checkpoint"),
]


@pytest.mark.parametrize(("text", "remedy"), REMEDIES)
def test_known_failures_end_with_a_remedy(text, remedy):
    assert remedy in str(as_cerflow_error(text)).splitlines()[-1]
