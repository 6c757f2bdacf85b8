"""Compiled kernels are found wherever cerflow lies, and one process of a machine compiles them."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from pkgutil import walk_packages

import pytest

import cerflow
import cerflow.engine.kernels
from cerflow.engine import kernel_cache
from cerflow.engine.kernels.base.jit import KernelPart, inlined, kernel, part
from cerflow.engine.recognize.warmup import warm_up

PACKAGE = Path(cerflow.__file__).parent
FOLDER = "from cerflow.engine.kernel_cache import kernels_folder; print(kernels_folder())"
#: Iteration, conditions between events, and reading of matches: kernels of several kinds.
RECOGNISE = """
import cerflow
import cerflow.engine.kernels
from cerflow.engine.recognize.warmup import kernels_are_compiled
events = [{"type": t, "v": v} for v, t in enumerate("AABAB")]
query = cerflow.parse("SELECT * WHERE A+ AS a ; B AS b FILTER a.v < b.v")
import sys
print(cerflow.__file__, kernels_are_compiled(), len(list(query.match(events))), 'numba' in sys.modules)
"""


def environment(**given):
    kept = {k: v for k, v in os.environ.items() if k not in ("CERFLOW_CACHE_DIR", "NUMBA_CACHE_DIR", "PYTHONPATH")}
    return kept | {name: str(value) for name, value in given.items()}


def python(script, *arguments, **variables):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**variables))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    """The package as an application on a cluster gets it."""
    path = tmp_path_factory.mktemp("shipped") / "cerflow.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in PACKAGE.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, Path("cerflow") / file.relative_to(PACKAGE))
    return path


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """The package where nothing can be written beside the kernels, not even by root."""
    path = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, path / "cerflow", ignore=shutil.ignore_patterns("__pycache__"))
    (path / "cerflow" / "engine" / "kernels" / "__pycache__").write_text("")
    return path


def test_the_stamp_covers_all_that_kernels_are_made_of():
    imported = set()
    for file in (PACKAGE / "engine" / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("cerflow."):
                imported.add(node.module)
    covered = {f"{package}.{name.removesuffix('.py')}" for package, name in kernel_cache._CONSTANTS}
    others = {name for name in imported if not name.startswith("cerflow.engine.kernels")}
    assert others - {"cerflow.engine.machine_code"} == covered


@pytest.mark.slow
@pytest.mark.long
def test_kernels_lie_beside_their_sources_or_where_a_variable_says(tmp_path, read_only, zipped):
    own = f"kernels-{kernel_cache.kernels_stamp()}"
    beside = PACKAGE / "engine" / "kernels" / "__pycache__"
    given, users, file = tmp_path / "given", tmp_path / "users", tmp_path / "file"
    file.write_text("")
    cases = [
        ({"PYTHONPATH": PACKAGE.parent}, beside),
        ({"PYTHONPATH": PACKAGE.parent, "NUMBA_CACHE_DIR": given}, given / own),
        ({"PYTHONPATH": PACKAGE.parent, "NUMBA_CACHE_DIR": given, "CERFLOW_CACHE_DIR": users}, users / own),
        ({"PYTHONPATH": PACKAGE.parent, "CERFLOW_CACHE_DIR": file / "below"}, beside),
        ({"PYTHONPATH": read_only, "XDG_CACHE_HOME": users}, users / "cerflow" / own),
        ({"PYTHONPATH": zipped, "XDG_CACHE_HOME": users}, users / "cerflow" / own),
        ({"PYTHONPATH": zipped, "XDG_CACHE_HOME": file, "TMPDIR": given}, given / f"cerflow-{os.getuid()}" / own),
        ({"PYTHONPATH": zipped, "CERFLOW_CACHE_DIR": file / "below"}, None),
    ]
    for variables, expected in cases:
        assert python(FOLDER, **variables) == [str(expected)], variables


@pytest.mark.slow
def test_a_temporary_folder_of_somebody_else_is_not_used(tmp_path, zipped):
    folder = tmp_path / f"cerflow-{os.getuid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    file = tmp_path / "file"
    file.write_text("")
    assert python(FOLDER, PYTHONPATH=zipped, XDG_CACHE_HOME=file, TMPDIR=tmp_path) == ["None"]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["zipped", "read_only"])
def test_kernels_are_the_same_wherever_the_package_lies(tmp_path, place, request):
    warm_up()
    source = request.getfixturevalue(place)
    folder = tmp_path / f"kernels-{kernel_cache.kernels_stamp()}"
    shutil.copytree(kernel_cache.kernels_folder(), folder, ignore=shutil.ignore_patterns("*.pyc"))
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    where, compiled, found, imported = python(RECOGNISE, PYTHONPATH=source, CERFLOW_CACHE_DIR=tmp_path)
    assert where.startswith(str(source))
    assert (compiled, found, imported) == ("True", "10", "False")
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before


COMPILE = """
import os, sys, time
from pathlib import Path
from pkgutil import walk_packages
from cerflow.engine import kernel_cache
log, dies = Path(sys.argv[1]), sys.argv[2] == "dies"
def work():
    with log.open("a") as file:
        file.write("worked\\n")
    time.sleep(0.5)
    if dies:
        os._exit(0)
kernel_cache.compile_once(work)
print(kernel_cache.is_complete())
"""


@pytest.mark.slow
def test_one_process_compiles_and_the_others_wait(tmp_path):
    log = tmp_path / "log"
    variables = environment(CERFLOW_CACHE_DIR=tmp_path / "cache", PYTHONPATH=PACKAGE.parent)
    command = [sys.executable, "-c", COMPILE, str(log), "lives"]
    # The one that comes first dies while it works.
    assert python(COMPILE, log, "dies", CERFLOW_CACHE_DIR=tmp_path / "cache", PYTHONPATH=PACKAGE.parent) == []
    started = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0].strip() for process in started] == ["True"] * 4
    assert log.read_text().split() == ["worked"] * 2


def test_no_two_functions_of_kernels_have_one_name():
    """Kernels that two processes have compiled are loaded together; names tell their functions apart."""
    names = {}
    for module in walk_packages(cerflow.engine.kernels.__path__, "cerflow.engine.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, KernelPart):
                function = value.py_func
                assert "<locals>" not in function.__qualname__
                assert names.setdefault((function.__module__, function.__qualname__), value) is value
    assert len(names) > 100


@pytest.mark.parametrize("decorator", [kernel, part, inlined])
def test_functions_of_kernels_need_names(decorator):
    with pytest.raises(ValueError, match=r"'.*<locals>.nameless' needs a __qualname__ that no other function has"):

        @decorator
        def nameless():
            return 1
