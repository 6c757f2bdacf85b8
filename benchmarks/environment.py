"""Where and with what something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa

from benchmarks.engines import source_path
from benchmarks.processes import peak_of

__all__ = ["environment", "interpreter_mb"]

_ROOT = Path(__file__).resolve().parent.parent


def interpreter_mb() -> float:
    """The memory of a bare Python in MB, 0 where the system does not tell."""
    return _peak_mb("pass")


def environment(interpreter: float) -> dict[str, object]:
    """What all reports tell; ``interpreter`` is the memory of a bare Python."""
    commit = subprocess.run(["git", "-C", _ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "commit": commit.stdout.strip() or "unknown",
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "system": platform.system(),
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "pyarrow": pa.__version__,
        "memory of a bare Python": interpreter,
        "of one that imports cerflow": _peak_mb("import cerflow"),
    }


def _peak_mb(statement: str) -> float:
    """The most memory that a Python needs for a statement."""
    script = f"{statement}; print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=source_path({}))
    return peak_of(done.stdout) or 0.0


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    except OSError:
        pass
    return f"{platform.machine()}, {os.cpu_count()} cores"
