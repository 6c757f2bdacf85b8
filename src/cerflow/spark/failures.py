"""Errors of Spark in plain words: the messages without stack traces, and errors of cerflow as what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cerflow.base import errors
from cerflow.base.errors import BadRecordError, CerflowError, InputError

_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_FRAME = re.compile(r'\s*File ".*", line \d+')
_JAVA_FRAME = re.compile(r"\s+at [^\s(]+\(.*\)$|\s+\.\.\. \d+ (?:more|common frames omitted)$")
_TITLES = (
    *(_TRACEBACK, "Driver stacktrace:", "JVM stacktrace:", "Suppressed: "),
    *("The above exception was", "During handling of the above exception"),
)
#: Where a streaming query tells of itself: offsets and plans.
_STREAM = "=== Streaming Query ==="
_CAUSE = "Caused by: "
#: What Spark says around a message, at its beginning.
_WRAPPER = re.compile(
    r"An error occurred while calling \S+\s+:|Exception thrown in awaitResult:|Job aborted due to stage failure:|"
    r"Task \d+ in stage [\d.]+ failed \d+ times?, most recent failure:|Lost task [^(]*\(TID \d+\) \([^)]*\):|"
    r"(?:\[PYTHON_EXCEPTION\] )?An exception was thrown from the Python worker[:.]|"
    r"Please see the stack trace below\.|"
    r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception:|An exception was raised by the Python Proxy\. "
    r"Return Message:|\[FOREACH_BATCH_USER_FUNCTION_ERROR\] .*? Reason:|"
    r"\[USER_RAISED_EXCEPTION\]|"
    r"(?:org\.apache\.spark|pyspark|py4j)\.[\w.$]+:",
    re.DOTALL,
)
#: What Spark says after a message: a code, and a plan.
_CODE = re.compile(r"\s*SQLSTATE: \w{5}(?:;.*)?\s*$", re.DOTALL)
#: In front of the name of an exception.
_PACKAGE = re.compile(r"(?:[A-Za-z_][\w$]*\.)+(?=[A-Z]\w*(?:: |$))")
_OWN = re.compile(re.escape(errors.__name__) + r"\.(\w+): (.*)", re.DOTALL)
_ANEW = "restore the checkpoint from a copy as a whole, or take a new one"
#: What to do about an error, by what its text has.
_REMEDIES = {
    "No space left on device": "Free space on the disk and start again: the stream continues where it ended.",
    "CSV header": "Files of CSV in a stream need the columns that it has, in their order: correct or remove this one.",
    r"\bCANNOT_LOAD_STATE_STORE|CANNOT_READ_(?:DELTA|SNAPSHOT|STREAMING_STATE)\w*|/state/\d+/\d+/|\.changelog": (
        f"The state in the checkpoint is incomplete: {_ANEW}. cerflow stream --set-back repeats micro-batches."
    ),
    "Multiple streaming jobs detected|CONCURRENT_STREAM_LOG_UPDATE": (
        f"Another process uses this checkpoint, or its last offsets are lost: end that process, or {_ANEW}."
    ),
    "assertion failed": f"Files in the checkpoint may be lost: {_ANEW}.",
    "FAILED_READ_FILE|is not a Parquet file|CANNOT_READ_FILE_FOOTER": (
        "Correct or remove the file. Spark leaves out files that are damaged or were removed with "
        "--conf spark.sql.files.ignoreCorruptFiles=true and --conf spark.sql.files.ignoreMissingFiles=true."
    ),
    r"No module named|cannot import name 'descriptor' from 'google\.protobuf'": (
        "The Python that PYSPARK_PYTHON names lacks this, on executors or on the driver's machine, where Spark "
        "plans data sources and begins streams; the manual's page 'On a cluster' lists what is needed."
    ),
    "Python worker failed to connect back": (
        "Spark waits ten seconds for Python to start where a stream begins, which a busy machine exceeds: start "
        "the stream again, and it continues where it ended."
    ),
    "Cannot run program": (
        "PYSPARK_PYTHON has to name a Python on executors and, for data sources and streams, on the driver's machine."
    ),
    "Python worker exited unexpectedly": (
        "If the system has ended it for its memory, raise spark.executor.memoryOverhead."
    ),
}
_ROW = re.compile(r"row (.*[}']): (.*)", re.DOTALL)


def messages(error: BaseException | str) -> list[str]:
    """All messages of an error of Spark and its causes, whole, each once, without stack traces and plans."""
    found: list[str] = []
    for message in map(_unwrapped, _segments(_text(error))):
        if message and not any(message in other for other in found):
            found.append(message)
    # An exception's name says little compared with other words.
    return [message for message in found if " " in message] or found


def own_error(error: BaseException | str) -> CerflowError | None:
    """The error of cerflow that made Spark fail, as a task raised it; None if there is none."""
    owns = [own for own in map(_OWN.match, messages(error)) if own is not None]
    if not owns:
        return None
    name, message = owns[-1].groups()
    row = _ROW.fullmatch(message)
    if name == BadRecordError.__name__ and row is not None:
        return BadRecordError(*row.groups())
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, CerflowError) else InputError(message)


def as_cerflow_error(error: BaseException | str) -> CerflowError:
    """The error of cerflow that made Spark fail, or else an `InputError` with all that Spark says, and remedies."""
    own = own_error(error)
    if own is not None:
        return own
    text = "\n".join(messages(error)) or f"its only message is {type(error).__name__}"
    remedies = [remedy for sign, remedy in _REMEDIES.items() if re.search(sign, text)]
    return InputError("\n".join([f"Spark failed: {text}", *remedies]))


@contextmanager
def own_errors_raised() -> Iterator[None]:
    """Raise errors of cerflow that arrive as errors of Spark as what they were; all others pass through."""
    try:
        yield
    except CerflowError:
        raise
    except Exception as error:
        own = own_error(error)
        if own is None:
            raise
        raise own from error


def _text(error: BaseException | str) -> str:
    # PySpark keeps the causes apart from the message: in a session under one name, with Connect under the other.
    kept = (getattr(error, name, None) for name in ("_stackTrace", "_stacktrace"))
    return "\n".join([str(error), *(f"{_CAUSE}{text}" for text in kept if text)])


def _segments(text: str) -> Iterator[str]:
    """The parts of a text between frames of stacks, each of which begins with the name of an exception, or none."""
    message: list[str] = []
    in_frames = in_stream = False
    for line in text.replace(_TRACEBACK, f"\n{_TRACEBACK}\n").splitlines():
        in_stream = (in_stream or line.startswith(_STREAM)) and not line.startswith(_CAUSE)
        if in_stream or (in_frames and line.startswith("    ")):
            # A line of a source file after its name.
            continue
        in_frames = _PYTHON_FRAME.match(line) is not None
        ended = in_frames or _JAVA_FRAME.match(line) is not None or line.lstrip().startswith(_TITLES)
        if ended or line.startswith(_CAUSE):
            yield "\n".join(message)
            message = []
        if not ended:
            message.append(line.removeprefix(_CAUSE))
    yield "\n".join(message)


def _unwrapped(message: str) -> str:
    before = None
    while before != message:
        before, message = message, _CODE.sub("", message.strip())
        wrapper = _WRAPPER.match(message)
        message = message if wrapper is None else message[wrapper.end() :]
    package = None if _OWN.match(message) else _PACKAGE.match(message)
    return message if package is None else message[package.end() :]
