"""The engine CORE through its Python package, run by the interpreter that it has wheels for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from benchmarks.cases import Case, Mode
from benchmarks.engines import Engine, UnavailableError
from benchmarks.processes import Worker
from benchmarks.streams import TickFiles

__all__ = ["core_engine"]

PACKAGE = "pycer==0.1.6"
_SCRIPT = Path(__file__).with_name("core_worker.py")


def core_engine(cache: Path, folder: Path, files: TickFiles, *, fetch: bool = True) -> Engine:
    """CORE on the ticks of CSV files.

    Raises `UnavailableError` if its package is not in the cache and may not be fetched, or cannot be.
    """
    python = _environment(cache, fetch=fetch)
    return Engine(
        "CORE", lambda: Worker([str(python), str(_SCRIPT)], folder=folder), lambda *asked: _line(files, *asked)
    )


def _line(files: TickFiles, case: Case, mode: Mode, limit: float) -> str:
    return json.dumps({**case.request("CORE"), "file": str(files.path(case.stream))})


def _environment(cache: Path, *, fetch: bool) -> Path:
    """The Python of an environment with the package, made on first use."""
    environment = cache / "core"
    python = environment / "bin" / "python"
    if _imports(python):
        return python
    if not fetch:
        raise UnavailableError(f"{PACKAGE} is not installed")
    interpreter = _interpreter()
    if interpreter is None:
        raise UnavailableError("no CPython 3.13 was found, which the wheels of pycer need")
    try:
        subprocess.run([interpreter, "-m", "venv", "--clear", environment], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise UnavailableError(f"{PACKAGE} could not be installed: {_last_line(failure)}") from None
    if not _imports(python):
        raise UnavailableError(f"{PACKAGE} is installed, but cannot be imported")
    return python


def _imports(python: Path) -> bool:
    return python.exists() and subprocess.run([python, "-c", "import pycer"], capture_output=True).returncode == 0


def _interpreter() -> str | None:
    """A CPython 3.13: on the PATH, else under pyenv."""
    found = shutil.which("python3.13")
    # What stands on the PATH may be a shim of pyenv that runs no interpreter.
    if found is not None and subprocess.run([found, "-V"], capture_output=True).returncode == 0:
        return found
    versions = sorted((Path.home() / ".pyenv" / "versions").glob("3.13.*/bin/python"))
    return str(versions[-1]) if versions else None


def _last_line(failure: OSError | subprocess.CalledProcessError) -> str:
    errors = getattr(failure, "stderr", None) or b""
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else str(failure)
