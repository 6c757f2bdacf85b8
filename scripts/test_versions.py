"""Tests the wheel in environments of their own, one for each Python from 3.11 on that this machine has.

Pythons are looked for on the ``PATH`` and among those of pyenv and uv. Each gets the newest dependencies. The oldest
one is tested once more, with the lowest versions of the dependencies that ``pyproject.toml`` allows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
OLDEST = (3, 11)
_ASK = "import sys; print(*sys.version_info[:4], sys.executable)"
#: Without Spark, but for the tests that are there for this.
MARKED = ["-m", "versions or not slow"]
#: Other folders need programs or look at the sources.
SELECTED = [*MARKED, *(f"--ignore=tests/{room}" for room in ("benchmarks", "cli/examples", "docs", "look/viewing"))]
#: Tests of what new releases of Python have changed before, and of every way to match.
BRIEF = [
    *MARKED,
    *("tests/engine/test_random.py", "tests/language/predicates", "tests/api/programs", "tests/api/test_query.py"),
    *("tests/api/test_inputs.py", "tests/api/test_stream_inputs.py", "tests/cli/test_run.py"),
]
#: The same of NumPy and Arrow, for the lowest versions and the newest Python: those between have its NumPy and Arrow.
BRIEF_ARROW = [
    *(f"tests/engine/test_{name}.py" for name in ("conformance", "limits", "times")),
    *("tests/engine/events", "tests/files"),
]
#: The same of Spark: for the lowest versions and the newest Python.
BRIEF_SPARK = [
    *(f"tests/spark/{name}.py" for name in ("test_match", "test_job", "test_predicates", "source/test_source")),
]


def main() -> int:
    """Test all environments; returns 1 if any of them fails, or there are too few."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--least", type=int, default=2, help="fail if there are fewer Pythons (default: 2)")
    options.add_argument("--lowest", action="store_true", help="test only the lowest versions of the dependencies")
    options.add_argument("--brief", action="store_true", help="a selection; the oldest Python only with the lowest")
    chosen, given = options.parse_known_args()
    found = pythons()
    versions = [".".join(map(str, version)) for version in found]
    print(f"cerflow: found Python {', '.join(versions)}", flush=True)
    if len(found) < chosen.least and not chosen.lowest:
        least = f"at least {chosen.least} are to be tested; LEAST_PYTHONS=1 allows fewer"
        print(f"cerflow: {least}. pyenv, uv or the system's packages install others", file=sys.stderr)
        return 1
    cases = {} if chosen.lowest else {f"{one}.{two}": python for (one, two, _), python in found.items()}
    if chosen.brief:
        cases.pop("{}.{}".format(*min(found)), None)
    cases["lowest"] = found[min(found)]
    selected = {label: [*(BRIEF if chosen.brief else SELECTED), *given] for label in cases}
    if chosen.brief:
        # Spark's own tests see little of a Python between these.
        for label in list(cases)[-2:]:
            selected[label] += BRIEF_ARROW + BRIEF_SPARK
    with tempfile.TemporaryDirectory() as wheels:
        # PySpark comes without a wheel, and would be built for each environment.
        (spark,) = (wanted for wanted in requirements() if wanted.startswith("pyspark"))
        run([*PIP, "wheel", "--no-deps", "--wheel-dir", wheels, ".", spark])
        with ThreadPoolExecutor(2) as pool:
            # The first is tested while others are installed.
            made = pool.map(partial(environment, Path(wheels)), cases, cases.values())
            failed = [label for label, inside in zip(cases, made) if not passes(label, inside, selected[label])]
    if failed:
        print(f"cerflow: the tests fail with {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def pythons() -> dict[tuple[int, ...], Path]:
    """The interpreters by their versions: for each minor version the latest release, in ascending order."""
    uv = shutil.which("uv")
    managers = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    managers += [Path(line) for line in (run([uv, "python", "dir"]) if uv else "").splitlines()]
    folders = [Path(sys.executable).resolve().parent]
    folders += [Path(folder) for folder in os.environ["PATH"].split(os.pathsep) if folder]
    folders += [folder for manager in managers for folder in manager.glob("*/bin")]
    found: dict[tuple[int, ...], Path] = {}
    for python in (file for folder in folders for file in folder.glob("python3.*")):
        # A shim of pyenv may have no interpreter after it.
        if re.fullmatch(r"python3\.\d+", python.name):
            told = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True).stdout
            if answer := re.fullmatch(r"(\d+) (\d+) (\d+) final (.+)\n", told):
                *version, executable = answer.groups()
                found.setdefault(tuple(map(int, version)), Path(executable))
    newest = {version[:2]: version for version in sorted(found)}
    return {version: found[version] for minor, version in newest.items() if minor >= OLDEST}


def requirements() -> list[str]:
    """What cerflow, its extra for Spark and the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *extras["spark"], *extras["test"]]


def environment(wheels: Path, label: str, python: Path) -> Path:
    """The interpreter of a fresh environment with the wheel, and without Numba."""
    venv = ROOT / f".venv-{label}"
    inside = venv / "bin" / "python"
    run([python, "-m", "venv", "--clear", "--without-pip", venv])
    (wheel,) = wheels.glob("cerflow-*.whl")
    wanted = [f"cerflow[spark,test] @ {wheel.as_uri()}"]
    if label == "lowest":
        wanted += [re.sub(">=([^,]+).*", r"==\1", requirement) for requirement in requirements()]
    run([*PIP, "--python", inside, "install", "--no-compile", "--find-links", wheels, *wanted])
    return inside


def passes(label: str, inside: Path, selected: list[str]) -> bool:
    """Whether the selected tests pass in an environment."""
    shown = run([*PIP, "--python", inside, "freeze"])
    chosen = re.findall(r"(?m)^(?:numba|numpy|pandas|pyarrow|pyspark)==.*$", shown)
    print(f"cerflow: testing with {label}, {run([inside, '--version']).strip()}: {', '.join(chosen)}", flush=True)
    variables = {"CERFLOW_EXAMPLES": "0.02"} | os.environ
    return subprocess.run([inside, "-m", "pytest", *selected], cwd=ROOT, env=variables).returncode == 0


def run(command: list[str | Path]) -> str:
    """What a command says, which must not fail, in the root of the repository."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
