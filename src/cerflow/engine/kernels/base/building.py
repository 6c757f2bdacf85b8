"""Builds the library of all kernels: ``cc`` links the objects of their units.

Numba makes these for all processors, in processes of their own with its optimiser off. They are kept, so that a changed
kernel costs seconds. ``python -m cerflow.engine.kernels.base.building`` builds the library of the package.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm

from cerflow.cache_folder import cache_folder, open_own
from cerflow.engine.kernels.base.calling import KERNELS, Kernel
from cerflow.engine.kernels.base.compiling import module_of, object_of
from cerflow.engine.kernels.base.library import LIBRARY, keep, packaged, sources, stamp, symbol
from cerflow.engine.kernels.base.parts import BUILDING

_KERNELS = "cerflow.engine.kernels"
#: For each machine that is built for, a processor for each level.
_LEVELS = {"x86_64": {"base": "x86-64", "v3": "x86-64-v3"}}
#: Modules that call kernels and do not change them.
_BESIDE = {f"{_KERNELS}.table", f"{_KERNELS}.base.calling", f"{_KERNELS}.base.library"}
_log = logging.getLogger("cerflow")
_held: list[Any] = []


def build(path: Path, machine: str = "") -> bool:
    """Build the library for a machine (empty: this one) at a path; returns whether something could link it."""
    linker = [shutil.which("cc") or ""]
    if machine or not linker[0]:
        if not find_spec("ziglang"):
            return False
        linker = [sys.executable, "-m", "ziglang", "cc", *(["-target", f"{machine}-linux-gnu"] if machine else [])]
    with TemporaryDirectory() as folder:
        made, objects = Path(folder, "made"), []
        for number, content in enumerate(_objects(machine)):
            objects.append(Path(folder, f"{number}.o"))
            objects[-1].write_bytes(content)
        linked = subprocess.run([*linker, "-shared", "-o", made, *objects, "-lm"]).returncode == 0
        if linked:
            keep(made.read_bytes(), path)
    return linked


def in_process() -> Callable[[str], int]:
    """All kernels in this process only, as a function from their symbols to addresses."""
    contents = list(_objects(""))
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for content in contents:
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    # It is never closed, as Python may end in any order.
    _held.append(engine)
    found: Callable[[str], int] = engine.get_function_address
    return found


def _units() -> dict[str, list[Kernel]]:
    """The kernels that are compiled together."""
    import_module(f"{_KERNELS}.table")
    units = dict.fromkeys(kernel.unit for kernel in KERNELS.values())
    return {unit: [kernel for kernel in KERNELS.values() if kernel.unit == unit] for unit in units}


def _target(machine: str) -> tuple[str, dict[str, str]]:
    """LLVM's triple for a machine (empty: this one), and the processor of each level."""
    triple = f"{machine}-unknown-linux-gnu" if machine else llvm.get_process_triple()
    return triple, _LEVELS.get((machine or platform.machine()).replace("AMD64", "x86_64"), {"base": "generic"})


def _objects(machine: str) -> Iterator[bytes]:
    """The objects of all units, and one that has the stamp; two processes make what is not kept."""
    began = time.perf_counter()
    _log.warning("compiling the kernels, which may take three minutes")
    # Not in threads: Python 3.11 parses in one thread at a time only.
    versions = [_version(kernels) for kernels in _units().values()]
    with TemporaryDirectory() as other, ThreadPoolExecutor(2) as pool:
        of_unit = partial(_of_unit, cache_folder() or Path(other), machine)
        for contents in pool.map(of_unit, _units(), versions):
            yield from contents
    module = llvm.parse_assembly(f"define i64 @{stamp()}() {{\n ret i64 1\n}}")
    triple, levels = _target(machine)
    yield object_of(module, triple, levels["base"])
    _log.warning("compiled the kernels in %.0f s", time.perf_counter() - began)


def _of_unit(folder: Path, machine: str, unit: str, version: str) -> list[bytes]:
    """The objects of a unit for each level, made if they are not kept."""
    where = f"{unit}-{version}-{machine or sysconfig.get_platform()}"
    paths = [folder / f"{where}-{level}.o" for level in _target(machine)[1]]
    if None in map(open_own, paths):
        began = time.perf_counter()
        # The same modules as here: -P keeps the working directory out unless it is on the path of this process.
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        given = {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "PYTHONPATH": path}
        command = [sys.executable, "-P", "-c", f"from {_KERNELS}.base.building import make; make()", unit, machine]
        subprocess.run([*command, *paths], env={**os.environ, **given, BUILDING: "1"}, check=True)
        _log.info("compiled the kernels of '%s' in %.0f s", unit, time.perf_counter() - began)
    return [file.read() for file in map(open_own, paths) if file is not None]


def _version(kernels: list[Kernel]) -> str:
    """A hash of all that the objects of a unit depend on: what it imports, without comments."""
    texts = sources()
    wanted = [f"{_KERNELS}.base.compiling", *(f"{_KERNELS}.{kernel.where}" for kernel in kernels)]
    for name in wanted:
        for package, first in re.findall(r"(?m)^ *from (cerflow\.[\w.]+) import (\w*)", texts[name].decode()):
            for found in (package, f"{package}.{first}"):
                if found in texts and found not in (*wanted, *_BESIDE):
                    wanted.append(found)
    trees = [ast.parse(texts[name]) for name in sorted(set(wanted))]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0] = ast.Pass()
    listed = [(kernel.name, kernel.arguments, kernel.results, kernel.inner) for kernel in kernels]
    depends = (listed, [*map(ast.dump, trees)], [version(name) for name in ("numba", "llvmlite")])
    return hashlib.sha256(repr(depends).encode()).hexdigest()[:16]


def make() -> None:
    """Write the objects of a unit, which the command line names together with the machine and their places."""
    unit, machine, *paths = sys.argv[1:]
    # A compilation makes millions of objects that are needed to its end.
    gc.disable()
    whole, (triple, levels) = module_of(_units()[unit]), _target(machine)
    for path, (level, processor) in zip(paths, levels.items(), strict=True):
        module = whole.clone()
        for kernel in _units()[unit]:
            module.get_function(kernel.name).name = symbol(kernel.name, level)
        keep(object_of(module, triple, processor), Path(path))


def main(machine: str = "") -> None:
    """Build the library of the package, with progress, if it is not there."""
    logging.basicConfig(level=logging.INFO, format="cerflow: %(message)s")
    if not machine and packaged() is not None:
        return
    if not build(Path(str(files(_KERNELS))) / LIBRARY, machine):
        sys.exit("cerflow: 'cc', which links the kernels, is missing: install a C compiler, or pip install ziglang")


if __name__ == "__main__":
    main(*sys.argv[1:])
