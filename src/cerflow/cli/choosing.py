"""``--runner auto``: a query runs in this process if the input fits its memory, else on Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.cli.spark.session import java_problem
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source

try:
    import resource
except ImportError:  # Windows, where processes have no limits of their own
    resource = None  # type: ignore[assignment]

#: Bytes of memory that rows need for each byte of their file, including temporary copies.
_TEXT = {InputFormat.CSV: 4, InputFormat.JSON: 8}
#: Bytes of memory for each value, including copies, for formats that tell the number of values.
_VALUE = 48
_INSTALL = "pip install 'cerflow[spark]'"


@dataclass(frozen=True)
class Choice:
    """Whether to run on Spark, and the reason for the closing line; ``note`` and ``warning`` are said at once."""

    spark: bool
    reason: str = ""
    note: str | None = None
    warning: str | None = None


def choose_runner(sources: Sequence[Source], spark_options: Iterable[str]) -> Choice:
    """Decide by the inputs; ``spark_options`` are the given options that only Spark knows."""
    given = next(iter(spark_options), None)
    if given is not None:
        return Choice(True, f"on Spark, because of {given}")
    files = [(file, source.format) for source in sources for file in source.files]
    if not files:
        return Choice(False, "in this process, as standard input is")
    needed, free = sum(memory_needed(*file) for file in files), available_memory()
    figures = f"the input needs about {_bytes(needed)} of {_bytes(free)} of free memory"
    if needed * limits.MEMORY_SHARE <= free:
        return Choice(False, f"in this process: {figures}")
    missing = java_problem() if find_spec("pyspark") is not None else f"PySpark is not installed ({_INSTALL})"
    if missing is None:
        return Choice(True, note=f"on Spark: {figures}")
    warning = f"{figures}, but it is read in this process, because {missing}"
    return Choice(False, warning=warning)


def memory_needed(file: Path, input_format: InputFormat) -> int:
    """An estimate, without reading the rows, of the bytes that the rows of a file need while they are matched."""
    try:
        size = file.stat().st_size
        if input_format is InputFormat.PARQUET:
            footer = pyarrow.parquet.read_metadata(file)
            packed: int = sum(footer.row_group(k).total_byte_size for k in range(footer.num_row_groups))
            return max(packed, _VALUE * int(footer.num_rows * footer.num_columns))
        if input_format is InputFormat.ORC:
            found = pyarrow.orc.ORCFile(file)
            return max(size, _VALUE * int(found.nrows * len(found.schema)))
    except (OSError, pa.ArrowException):
        # The reader of the file will report the error.
        return 0
    return size * COMPRESSIONS.get(file.suffix.lower(), 1) * _TEXT[input_format]


def available_memory() -> int:
    """The bytes of memory that this process may still take, by the system, its control group and its own limit."""
    found = []
    try:
        lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        found = [int(line[1]) << 10 for line in lines if line[0] == "MemAvailable:"]
    except OSError:
        pass
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
                try:
                    figures = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    idle = int(figures.get("inactive_file", 0))
                    yield int((folder / limit).read_text()) - int((folder / used).read_text()) + idle
                except (OSError, ValueError):
                    # There is no such file, or the limit is "max".
                    continue


def _bytes(number: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number} bytes"
