"""The library of kernels: what is in it, where it comes from, and how it is called."""

import ast
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
import zipfile
from importlib import import_module
from pathlib import Path
from tokenize import COMMENT

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import CerflowError
from cerflow.engine import layout
from cerflow.engine.kernels import table
from cerflow.engine.kernels.base import library
from cerflow.engine.kernels.base.calling import Row

PACKAGE = Path(cerflow.__file__).parent
KERNELS = {kernel.name: kernel for unit in table.UNITS.values() for kernel in unit}
#: Iteration, conditions between events, and reading of matches: kernels of several kinds, where there is no Numba.
RECOGNISE = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import cerflow
events = [{"type": t, "v": v} for v, t in enumerate("AABAB")]
query = cerflow.parse("SELECT * WHERE A+ AS a ; B AS b FILTER a.v < b.v")
print(cerflow.__file__, len(list(query.match(events))))
"""


@pytest.fixture(scope="module")
def built():
    """The library that this process uses."""
    library.load_kernels()
    packaged = PACKAGE / "engine" / "kernels" / library.library_name()
    return packaged if packaged.exists() else library.kept_path()


def python(script, path, cache):
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    variables |= {"PYTHONPATH": str(path), "CERFLOW_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables)


# -- what is in it ----------------------------------------------------------------------------------------------------


def test_the_table_names_all_that_can_be_called_and_nothing_of_python_is_needed(built):
    if sys.platform != "linux" or shutil.which("nm") is None:
        pytest.skip("nm tells")
    told = subprocess.run(["nm", "-D", built], capture_output=True, text=True, check=True).stdout
    symbols = [(line.split()[-2], line.split()[-1].split("@")[0]) for line in told.splitlines()]
    exported = {name for kind, name in symbols if kind == "T"}
    levels = library.processors() if built.parent.name == "kernels" else [library.own_processor()]
    named = {library.symbol(name, level) for name in KERNELS for level in levels}
    assert {name for name in exported if name.startswith("cerflow_")} == named
    assert {name for kind, name in symbols if kind == "U"} <= {"ceil", "floor", "fmod", "memset", "pow", "trunc"}


@pytest.mark.parametrize("name", KERNELS)
def test_the_table_has_the_arguments_of_each_kernel(name):
    kernel = KERNELS[name]
    module = import_module(f"cerflow.engine.kernels.{kernel.where}")
    parameters = inspect.signature(getattr(module, name)).parameters
    count = len(parameters)
    if "given" in parameters:
        # The fields of the module's tuple.
        (kind,) = [c for c in vars(module).values() if isinstance(c, type) and hasattr(c, "_fields")]
        count += len(kind._fields) - 1
    assert count == len(kernel.arguments)


def test_the_stamp_covers_all_that_kernels_are_made_of():
    imported = set()
    for file in (PACKAGE / "engine" / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("cerflow."):
                modules = {f"{node.module}.{name.name}" for name in node.names} & library.sources().keys()
                imported |= modules or {node.module}
    used = {"cerflow.base.cache_folder", "cerflow.base.errors"}  # by what builds and loads the library
    assert {name for name in imported - used if not name.startswith("cerflow.engine.kernels")} == {
        name for name in library.sources() if not name.startswith("cerflow.engine.kernels")
    }


def test_parts_are_compiled_once_for_all_widths_and_constants(tmp_path):
    pytest.importorskip("numba")
    script = """
import os
os.environ["CERFLOW_BUILDING"] = "1"
import numpy as np
import pyarrow as pa
from numba import njit
from cerflow.engine.kernels.base.parts import part
added = part(lambda a, b: a + b)
print(njit(lambda: added(np.int32(2**31 - 1), 1) + added(3, np.int8(4)))(), len(added.signatures))
"""
    assert python(script, PACKAGE.parent, tmp_path).stdout == f"{2**31 + 7} 1\n"


# -- how it is called -------------------------------------------------------------------------------------------------


def test_arrays_and_results_pass_at_any_address():
    free = np.full((4, 3), -1)
    assert free.ctypes.data > 2**32
    slot = table.slot_of(free, 5, 7)
    free[slot] = 5, 8, 9
    assert table.slot_of(free, 5, 7) == (slot + 1) % 4
    memory = cerflow.parse("SELECT * WHERE A ; B").recognizer(pa.schema({"type": pa.string()}))._machine.memory
    nodes, marks = np.ones((4, layout.NODE_WORDS), np.int64), np.ones((1, 2), np.int64)
    none, used = np.full(0, -1, np.int32), np.zeros(1, np.int32)
    forward = np.full(1, -1, np.int32)
    found = table.collect(memory._address(), layout.NO_BOUND, nodes, marks, forward, used, none)
    assert (found, forward.tolist(), marks.tolist()) == ((1, 1), [0], [[-1, 0]])


@pytest.mark.parametrize("held", [True, False])
def test_rows_are_made_once(held):
    free = np.full((64, 3), -1)
    row = Row(table.slot_of, free.ctypes.data, 64, 3, 5, 7)
    call = row.call_held if held else row.call
    assert call() == table.slot_of(free, 5, 7) > 0
    row.words[1] = 1
    assert call() == 0


def test_arrays_that_kernels_cannot_use_are_refused():
    good = np.zeros((1, 3), np.int64)
    for bad in (
        good.astype(np.int32),
        np.zeros((1, 6), np.int64)[:, ::2],
        good.reshape(3),
        np.zeros(25, np.uint8)[1:].view(np.int64).reshape(1, 3),
    ):
        with pytest.raises(TypeError, match=r"the kernel slot_of cannot use .* it needs int64 with 2 axes"):
            table.slot_of(bad, 5, 7)


# -- where it comes from ----------------------------------------------------------------------------------------------


@pytest.fixture
def place(built, tmp_path, monkeypatch):
    """Where a library is kept for this process: the right one, alone."""
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path))
    # There is nothing in the package.
    monkeypatch.setattr(library, "files", lambda package: tmp_path / "nothing")
    return Path(shutil.copy(built, library.kept_path()))


def test_a_library_of_other_sources_is_not_loaded(place, monkeypatch):
    assert library.find_library() is not None
    changed = library.sources() | {"cerflow.engine.layout": "changed"}
    monkeypatch.setattr(library, "sources", lambda: changed)
    library.library_name.cache_clear()
    try:
        assert library.find_library() is None
    finally:
        library.library_name.cache_clear()


@pytest.mark.parametrize("content", [b"", b"no library"])
def test_a_damaged_library_is_not_loaded(tmp_path, content):
    (tmp_path / library.kept_path().name).write_bytes(content)
    # In a process of its own: this one has loaded files of the same number.
    script = """
from pathlib import Path
from cerflow.engine.kernels.base import library
library.library_name()
library.files = lambda package: Path("nothing")
print(library.find_library())
"""
    assert python(script, PACKAGE.parent, tmp_path).stdout == "None\n"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_a_library_of_somebody_else_is_not_loaded(place, caplog):
    os.chown(place, 12345, 12345)
    assert library.find_library() is None
    assert "belongs to the user with number 12345" in caplog.text


def test_without_library_and_numba_an_error_names_the_extra(place, monkeypatch):
    place.unlink()
    monkeypatch.delattr("cerflow.engine.kernels.base.building", raising=False)
    monkeypatch.setitem(sys.modules, "cerflow.engine.kernels.base.building", None)
    with pytest.raises(CerflowError, match=r"pip install 'cerflow\[compile\]'"):
        library.load_kernels.__wrapped__()


@pytest.mark.parametrize("linker", ["none", "broken"])
def test_without_linker_kernels_are_compiled_into_the_process(place, monkeypatch, linker):
    building = pytest.importorskip("cerflow.engine.kernels.base.building")
    place.unlink()
    monkeypatch.setenv("PATH", str(place.parent / "programs"))
    if linker == "broken":
        (place.parent / "programs").mkdir()
        (place.parent / "programs" / "cc").symlink_to(shutil.which("false", path=os.defpath))
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    module = building.llvm.parse_assembly("define i64 @answer(i64 %row) {\n ret i64 42\n}")
    content = building.object_of(module, "", library.processors()[0])
    monkeypatch.setattr(building, "_objects", lambda *given: iter([content]))
    assert library.load_kernels.__wrapped__()("answer") != 0
    assert not place.exists()


def test_only_units_that_use_a_changed_kernel_are_compiled_again(monkeypatch):
    building = pytest.importorskip("cerflow.engine.kernels.base.building")
    before = {unit: building._version(unit) for unit in table.UNITS}

    def changed(module):
        texts = library.sources() | {module: library.sources()[module] + "\nmore = 1\n"}
        monkeypatch.setattr(building, "sources", lambda: texts)
        return {unit for unit in table.UNITS if building._version(unit) != before[unit]}

    assert changed("cerflow.engine.kernels.matches.unfold") == {"matches"}
    assert changed("cerflow.engine.kernels.base.library") == set()
    assert changed("cerflow.engine.kernels.base.parts") == {*table.UNITS}
    assert changed("cerflow.engine.kernels.base.array_groups") == {*table.UNITS}
    # It is imported as a module, 'from cerflow.engine import layout', and by its names.
    assert changed("cerflow.engine.layout") == {*table.UNITS}


@pytest.mark.parametrize("name", library.sources())
def test_only_comments_and_docstrings_do_not_count(name):
    path = PACKAGE.parent / f"{name.replace('.', '/')}.py"
    text = path.read_text()
    lines = {token.start[0] for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == COMMENT}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines |= {*range(node.lineno, node.end_lineno + 1)}
    left_out = {
        k + 1
        for found in re.finditer(library._COMMENT, text)
        for k in range(text.count("\n", 0, found.start()), text.count("\n", 0, found.end()))
    }
    assert left_out <= lines


@pytest.mark.slow
def test_a_zip_brings_the_library_which_is_unpacked(built, tmp_path):
    path, cache = tmp_path / "cerflow.zip", tmp_path / "cache"
    with zipfile.ZipFile(path, "w") as archive:
        for file in PACKAGE.rglob("*.*"):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
                archive.write(file, Path("cerflow") / file.relative_to(PACKAGE))
    without = python(RECOGNISE, path, cache)
    assert "pip install 'cerflow[compile]'" in without.stderr
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(built, f"cerflow/engine/kernels/{library.library_name()}")
    done = python(RECOGNISE, path, cache)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(path / "cerflow" / "__init__.py"), "10"]
    assert "unpacked the kernels to" in done.stderr
    assert python(RECOGNISE, path, cache).stderr == ""
    assert (cache / library.kept_path().name).read_bytes() == built.read_bytes()
