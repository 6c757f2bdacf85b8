"""Java programs of ours that run another engine: found tools, compiled classes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.engines import UnavailableError

__all__ = ["run_tool", "started"]

_MEMORY = "-Xmx4g"


def started(sources: Path, jars: Sequence[Path], classes: Path) -> list[str]:
    """The command that starts the class Harness of a folder with sources, compiled again if a source has changed.

    Raises `UnavailableError` without Java, or if the program does not compile.
    """
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        raise UnavailableError("no Java with a compiler was found")
    files = sorted(sources.glob("*.java"))
    done = classes / "Harness.class"
    if not done.exists() or done.stat().st_mtime <= max(file.stat().st_mtime for file in files):
        path = ":".join(map(str, jars))
        run_tool([javac, "-nowarn", "-cp", path, "-d", str(classes), *map(str, files)], "the Java program")
    return [java, _MEMORY, "-cp", ":".join(map(str, [classes, *jars])), "Harness"]


def run_tool(command: Sequence[str | Path], what: str) -> None:
    """Run a command; raises `UnavailableError` with the last line that it wrote if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise UnavailableError(f"{what} could not be made ready: {lines[-1] if lines else 'no word of why'}")
