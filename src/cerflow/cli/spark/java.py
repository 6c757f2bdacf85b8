"""Checks whether Spark will find a Java that it can use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

#: The oldest version of Java that Spark 4 runs on.
OLDEST = 17

_ADVICE = (
    f"install Java {OLDEST} or 21 (for example the package openjdk-17-jre-headless, or from https://adoptium.net) "
    "or point JAVA_HOME at it; --runner local needs no Java"
)


def java_problem() -> str | None:
    """The fault of this machine's Java, and what to do about it; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = str(Path(home) / "bin" / "java")
        if not os.access(java, os.X_OK):
            return f"JAVA_HOME is '{home}', but there is no bin/java in it; {_ADVICE}"
    else:
        found = shutil.which("java")
        if found is None:
            return f"Spark needs Java {OLDEST} or newer, and there is no java on the PATH; {_ADVICE}"
        java = found
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
