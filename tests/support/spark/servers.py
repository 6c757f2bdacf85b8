"""Processes of Spark on this machine (a master, workers, a Connect server), and Python without cerflow for them."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

import cerflow
from cerflow.cli.spark.session import java_problem
from cerflow.engine.kernels.base import library

PACKAGE = Path(cerflow.__file__).parent
ROOT = PACKAGE.parent.parent
HOST = "127.0.0.1"
_PATIENCE = 240.0


def skip_without_java():
    problem = java_problem()
    if problem is not None:
        pytest.skip(problem)


def environment(**given):
    """The variables for a process that gets nothing from this one about where cerflow and its caches are."""
    dropped = ("PYTHONPATH", "CERFLOW_CACHE_DIR", "NUMBA_CACHE_DIR", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    # JVMs that do not live long: their compiler would take most of the time.
    java = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    return kept | java | {"SPARK_LOCAL_IP": HOST} | {name: str(value) for name, value in given.items()}


@contextmanager
def spark_server(arguments, log, says, script="spark-class", **variables):
    """A server, started by one of Spark's scripts and ended afterwards; gives the match of what it says when ready."""
    home = Path(find_spec("pyspark").origin).parent
    command = [str(home / "bin" / script), *map(str, arguments)]
    with log.open("w") as file:
        # With a group of its own, because scripts start it through other processes.
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(SPARK_HOME=home, **variables),
            start_new_session=True,
        )
    try:
        yield _said(process, log, says)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _said(process, log, says):
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = re.search(says, log.read_text())
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"the server did not say {says!r}:\n{log.read_text()[-3000:]}")


def free_port():
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return sock.getsockname()[1]


def python_without_cerflow(folder):
    """A Python that has all that is installed here but cerflow."""
    libraries = folder / "libraries"
    libraries.mkdir(parents=True)
    for name in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(name).iterdir():
            # What .pth files name, as an editable cerflow, is not looked for below folders that they name.
            if not entry.name.startswith(("cerflow", "pyspark_cerflow")) and not (libraries / entry.name).exists():
                (libraries / entry.name).symlink_to(entry)
    venv.create(folder / "python", symlinks=True)
    python = folder / "python" / "bin" / "python"
    (site,) = (folder / "python").glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{libraries}\n")
    return python


def kept_kernels(folder):
    """A folder for caches with the kernels as this machine has compiled them."""
    library.load_kernels()
    folder.mkdir(exist_ok=True)
    if library.kept_path().exists():
        shutil.copy(library.kept_path(), folder)
    return folder


def built_wheel(folder):
    """The wheel of this repository, made with Hatchling; None where that is not installed."""
    if find_spec("hatchling") is None:
        return None
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def zipped_sources(path):
    """The packages of this repository as a zip that Python imports from."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in PACKAGE.parent.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(PACKAGE.parent))
    return path
