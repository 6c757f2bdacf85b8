"""Where a run of the command line takes place: here if the input fits, else in a session of Spark, which needs Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.cli.output.reporting import in_largest_unit, note, warn
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings that a run needs, or that keep Spark quiet; ``--conf`` overrides them.
_SETTINGS = {
    # Times without a zone in files stay as they are, whatever the zone of the machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Lines with too few fields are only noticed if Spark splits all of them.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.ui.enabled": "false",
}


#: Lines about Spark itself: what Java says of a module that Spark names, and many words of a streaming query's first
#: worker, each line with an empty one after it.
_CHATTER = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector|"
    rb"(?:Starting )?Streaming TransformWithStateInPandas Python worker\b"
)


_T = TypeVar("_T")
#: Seconds within which the start of Spark notices that it has been ended.
_SECONDS_TO_END = 10


def require_pyspark() -> None:
    """Raise InputError, which says what to install, if PySpark is missing; modules that need it are imported then."""
    if find_spec("pyspark") is None:
        raise InputError(f"PySpark is not installed; run {_INSTALL}, or use --runner local")


@contextmanager
def spark_session(master: str | None, settings: Sequence[tuple[str, str]]) -> Iterator[SparkSession]:
    """A session with these settings; the block ends it unless it existed before.

    Raises InputError, which says what to install, if PySpark or a suitable Java is missing, and as an error of cerflow
    what Spark raises in the block.
    """
    require_pyspark()
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from cerflow.spark.failures import as_cerflow_error

    before = SparkSession.getActiveSession()
    with _new_session(master, settings) if before is None else nullcontext(before) as spark:
        try:
            yield spark
        except (PySparkException, Py4JJavaError) as error:
            # PySpark has no exception of its own for some errors, for example of readers of files.
            raise as_cerflow_error(error) from error


@contextmanager
def _new_session(master: str | None, settings: Sequence[tuple[str, str]]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    problem = java_problem()
    if problem is not None:
        raise InputError(problem)
    # Workers must run this interpreter: others may not have cerflow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    with as_file(files("cerflow.cli") / "log4j2.properties") as log:
        given = dict(settings)
        java_options = given.pop("spark.driver.extraJavaOptions", "")
        own = {
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()} {java_options}",
            "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        }
        builder = SparkSession.Builder().appName("cerflow").master(master or "local[*]")
        builder = builder.config(map={**own, **_SETTINGS, **given})

        def start() -> SparkSession:
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            if (master or "local").startswith("local") and "spark.sql.shuffle.partitions" not in given:
                # More tasks than cores would only cost time to start.
                spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
            return spark

        with _without_chatter():
            spark = _started(start)
        try:
            # Java knows the session as that of the thread that made it; this makes it that of this thread, too.
            spark.createDataFrame([], "none int")
            yield spark
        except KeyboardInterrupt:
            # Another thread has a connection of its own to Java, where this one may have left a call without an answer.
            # Cancelled tasks must not fill the terminal with errors.
            wait([_by_a_thread(lambda: spark.sparkContext.setLogLevel("OFF"))])
            wait([_by_a_thread(spark.stop)])
            raise
        except BaseException:
            spark.stop()
            raise
        else:
            spark.stop()


def _by_a_thread(work: Callable[[], _T]) -> Future[_T]:
    """What ``work`` gives; a signal interrupts who waits for it, but not the work."""
    result: Future[_T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


def _started(start: Callable[[], SparkSession]) -> SparkSession:
    """The session that ``start`` gives, made by another thread, so that a signal never interrupts PySpark itself.

    In another thread PySpark installs no signal handler, which would call Java amid another call. If the start fails or
    is interrupted, this kills the Java that PySpark has launched, as it would not end by itself.
    """
    from pyspark import SparkContext

    java_gateway: Any = import_module("pyspark.java_gateway")
    launched: list[subprocess.Popen[bytes]] = []
    launch, launching, ended = java_gateway.Popen, threading.Lock(), False

    def remembered(*command: Any, **named: Any) -> subprocess.Popen[bytes]:
        with launching:
            if ended:
                raise InputError("the start of Spark has been interrupted")
            process: subprocess.Popen[bytes] = launch(*command, **named)
            launched.append(process)
            return process

    java_gateway.Popen = remembered
    result = _by_a_thread(start)
    try:
        return result.result()
    except BaseException as error:
        interrupted = not isinstance(error, Exception)
        with launching:
            ended = interrupted
        if interrupted or SparkContext._gateway is None:
            for process in launched:
                process.kill()
                process.wait()
        wait([result], _SECONDS_TO_END)
        raise
    finally:
        java_gateway.Popen = launch


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Let the processes that begin in this block, and theirs, write to standard error without chatter."""
    read, write = os.pipe()
    terminal = os.dup(2)
    os.dup2(write, 2)
    os.close(write)
    threading.Thread(target=_pass_on, args=[read, terminal], daemon=True).start()
    try:
        yield
    finally:
        os.dup2(terminal, 2)


def _pass_on(source: int, target: int) -> None:
    """Copy from one file descriptor to another, but for the chatter."""
    held, dropped = b"", False
    with open(target, "wb") as out:
        while chunk := os.read(source, 2**16):
            lines = (held + chunk).splitlines(keepends=True)
            # The beginning of a possible line of chatter waits for the end of the line; a progress bar does not wait.
            held = lines.pop() if lines[-1].startswith(b"S") and not lines[-1].endswith(b"\n") else b""
            for line in lines:
                dropped = _CHATTER.match(line) is not None or (dropped and line == b"\n")
                if not dropped:
                    out.write(line)
            out.flush()
        out.write(held)


#: The oldest version of Java that Spark 4 runs on.
OLDEST = 17

_ADVICE = (
    f"install Java {OLDEST} or 21 (for example the package openjdk-17-jre-headless, or from https://adoptium.net) "
    "or point JAVA_HOME at it; --runner local needs no Java"
)


def java_problem() -> str | None:
    """The fault of this machine's Java, and what to do about it; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None and home:
        return f"JAVA_HOME is '{home}', but there is no bin/java in it; {_ADVICE}"
    if java is None:
        return f"Spark needs Java {OLDEST} or newer, and there is no java on the PATH; {_ADVICE}"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    # The first text in quotes is the version: "17.0.15", "21", or "1.8.0_292" for Java 8.
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', said)
    if version is None:
        return f"'{java}' does not report its version; Spark needs Java {OLDEST} or newer; {_ADVICE}"
    if int(version.group(2)) < OLDEST:
        return f"Spark needs Java {OLDEST} or newer, but '{java}' is version {version.group(1)}; {_ADVICE}"
    return None


try:
    import resource
except ImportError:  # Windows, where processes have no limits of their own
    resource = None  # type: ignore[assignment]

#: Bytes of memory that rows need for each byte of their file, including temporary copies.
_TEXT = {InputFormat.CSV: 4, InputFormat.JSON: 8}
#: Bytes of memory for each value, including copies, for formats that tell the number of values: of columns that are
#: evaluated, that are only read, and that are skipped (see `Request.evaluates`).
_VALUE: dict[bool | None, int] = {True: 48, False: 16, None: 0}
_INSTALL = "pip install 'cerflow[spark]'"


def choose_runner(
    inputs: Sequence[Input[Source]],
    spark_options: Iterable[str],
    local_options: Iterable[str] = (),
    evaluates: Callable[[Input[Source], str], bool | None] = lambda *_: True,
) -> tuple[bool, str]:
    """Decide by the inputs whether to run on Spark; the options are the given ones that only one runner knows.

    ``evaluates`` is as `Request.evaluates`. The reason is for the closing line, unless it has been said at once.
    """
    given, here = next(iter(spark_options), None), next(iter(local_options), None)
    if given is not None:
        return True, f"on Spark, because of {given}"
    if here is not None:
        return False, f"in this process, because of {here}"
    files = [(file, one) for one in inputs for file in one.events.files]
    if not files:
        return False, "in this process, as standard input is"
    needed = sum(memory_needed(file, one.events.format, partial(evaluates, one)) for file, one in files)
    free = available_memory()
    known = (in_largest_unit(number, ("bytes", "KiB", "MiB", "GiB"), 1024) for number in (needed, free))
    figures = f"the input needs about {' of '.join(known)} of free memory"
    if needed * limits.MEMORY_SHARE <= free:
        return False, f"in this process: {figures}"
    missing = java_problem() if find_spec("pyspark") is not None else f"PySpark is not installed ({_INSTALL})"
    if missing is None:
        note(f"on Spark: {figures}")
    else:
        warn(f"{figures}, but it is read in this process, because {missing}")
    return missing is None, ""


def memory_needed(
    file: Path, input_format: InputFormat, evaluates: Callable[[str], bool | None] = lambda _: True
) -> int:
    """An estimate, without reading the rows, of the bytes that the rows of a file need while they are matched.

    ``evaluates`` says of each column of Parquet and ORC whether the query evaluates it; None if the run skips it.
    """
    try:
        size = file.stat().st_size
        if input_format is InputFormat.PARQUET:
            footer = pyarrow.parquet.read_metadata(file)
            names = frozenset(footer.schema.to_arrow_schema().names)
            return sum(_bytes_of_column(footer, names, k, evaluates) for k in range(footer.num_columns))
        if input_format is InputFormat.ORC:
            found = pyarrow.orc.ORCFile(file)
            return max(size, sum(_VALUE[evaluates(name)] for name in found.schema.names) * int(found.nrows))
    except (OSError, pa.ArrowException):
        # The reader of the file will report the error.
        return 0
    return size * COMPRESSIONS.get(file.suffix.lower(), 1) * _TEXT[input_format]


def _bytes_of_column(
    footer: pyarrow.parquet.FileMetaData, names: Collection[str], number: int, evaluates: Callable[[str], bool | None]
) -> int:
    """The bytes that the values of a column of Parquet need; fields of nested columns are columns of the file.

    ``names`` are those of its columns as tables have them.
    """
    path = footer.schema.column(number).path
    use = evaluates(path if path in names else path.partition(".")[0])
    groups = range(footer.num_row_groups) if use else ()
    unpacked: int = sum(footer.row_group(k).column(number).total_uncompressed_size for k in groups)
    return max(unpacked, _VALUE[use] * int(footer.num_rows))


def available_memory() -> int:
    """The bytes of memory that this process may still take, by the system, its control group and its own limit."""
    found = []
    with suppress(OSError):
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        found = [int(line[1]) << 10 for line in lines if line[0] == "MemAvailable:"]
    found = found or [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    if resource is not None:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        found += [limit] if limit != resource.RLIM_INFINITY else []
    return max(0, min(found + list(_groups())))


def _groups(processes: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterable[int]:
    """The bytes that each control group (version 1 or 2) leaves this process; cached pages of files count as free."""
    try:
        lines = processes.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, name = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        base = root / kinds
        limit, used = ("memory.limit_in_bytes", "memory.usage_in_bytes") if kinds else ("memory.max", "memory.current")
        place = base / name.lstrip("/")
        for folder in (place, *place.parents):
            # In a container the path of a group may lie above the root that the container sees.
            if folder.is_relative_to(base):
                with suppress(OSError, ValueError):  # there is no such file, or the limit is "max"
                    figures = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    idle = int(figures.get("inactive_file", 0))
                    yield int((folder / limit).read_text()) - int((folder / used).read_text()) + idle
