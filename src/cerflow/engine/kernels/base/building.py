"""Builds the library of all kernels: ``cc`` links the objects of their units.

Separate processes make the objects: Numba writes the kernels as LLVM's text, which LLVM optimises for each level of
processors. Objects are kept, so a changed kernel costs seconds. ``python -m cerflow.engine.kernels.base.building``
builds the library of the package.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm
from numba import cfunc, types
from numba.core import codegen
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from cerflow.base.cache_folder import cache_folder, keep, open_own
from cerflow.base.errors import CerflowError
from cerflow.engine.kernels.base.array_groups import array_value
from cerflow.engine.kernels.base.calling import Kernel
from cerflow.engine.kernels.base.library import (
    PACKAGE,
    library_name,
    machine_name,
    own_processor,
    processors,
    sources,
    symbol,
)
from cerflow.engine.kernels.base.parts import BUILDING, OPTIONS
from cerflow.engine.kernels.table import UNITS

#: Modules that objects depend on, besides those of their kernels.
_SELF, _ARRAYS = f"{PACKAGE}.base.building", f"{PACKAGE}.base.array_groups"
#: Kernels never raise: the function that Numba calls first to report an error becomes a trap.
_REPORTING = r'(?m)^declare (void @"?numba_gil_ensure"?\([^)]*\)).*$'
_TRAP = r"define internal \1 {\n call void @llvm.trap()\n unreachable\n}\ndeclare void @llvm.trap()"
_log = logging.getLogger("cerflow")
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


def build(path: Path, levels: Sequence[str], machine: str = "") -> bool:
    """Build the library for levels of processors of a machine (empty: this one); returns whether it could be linked."""
    linker = [shutil.which("cc") or ""]
    if machine or not linker[0]:
        if not find_spec("ziglang"):
            return False
        linker = [sys.executable, "-m", "ziglang", "cc", *(["-target", f"{machine}-linux-gnu"] if machine else [])]
    with TemporaryDirectory() as folder:
        made, objects = Path(folder, "made"), []
        for number, content in enumerate(_objects(levels, machine)):
            objects.append(Path(folder, f"{number}.o"))
            objects[-1].write_bytes(content)
        done = subprocess.run([*linker, "-shared", "-o", made, *objects, "-lm"])
        if done.returncode == 0:
            keep(path, made.read_bytes())
    return done.returncode == 0


def in_process() -> Callable[[str], int]:
    """Compile all kernels for this process alone; returns a function from their symbols to addresses."""
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for content in _objects([own_processor()]):
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return lambda name: int(engine.get_function_address(name))


def _objects(levels: Sequence[str], machine: str = "") -> Iterator[bytes]:
    """The objects of all units for each level of processors; two processes make the missing ones."""
    began = time.perf_counter()
    _log.warning("compiling the kernels, which may take three minutes")
    with TemporaryDirectory() as other, ThreadPoolExecutor(2) as pool:
        folder, paths = cache_folder() or Path(other), {}
        for unit in UNITS:
            where = f"{unit}-{_version(unit)}-{machine_name(machine)}"
            paths[unit] = {level: folder / f"{where}-{level}.o" for level in levels}
        lacking = ((unit, [level for level in own if open_own(own[level]) is None]) for unit, own in paths.items())
        missing = iter([(unit, machine, {k: str(paths[unit][k]) for k in some}) for unit, some in lacking if some])
        list(pool.map(_make_all, [missing] * 2))
        yield from (file.read() for own in paths.values() for file in map(open_own, own.values()) if file is not None)
    _log.warning("compiled the kernels in %.0f s", time.perf_counter() - began)


def _make_all(units: Iterator[tuple[str, str, dict[str, str]]]) -> None:
    """Call `make` for units, one after another, in a process of its own; another thread takes from the same units."""
    # Import the same modules as here, and use only instructions that all processors have.
    called = "make(*json.loads(line)); print(flush=True)"
    command = f"import json, sys; sys.path[:] = {sys.path}; from {_SELF} import make\nfor line in sys.stdin: {called}"
    options = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", BUILDING: "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": {**os.environ, **options}}
    process: Any
    with subprocess.Popen([sys.executable, "-c", command], **pipes) as process:
        for unit, machine, paths in units:
            began = time.perf_counter()
            print(json.dumps([unit, machine, paths]), file=process.stdin, flush=True)
            if not process.stdout.readline():
                raise CerflowError(f"compiling the kernels of '{unit}' failed; its process has said why")
            _log.info("compiled the kernels of '%s' in %.0f s", unit, time.perf_counter() - began)


def _version(unit: str) -> str:
    """A hash of all that the objects of a unit depend on, such as the modules that it imports."""
    texts, wanted = sources(), [_ARRAYS, *(f"{PACKAGE}.{kernel.where}" for kernel in UNITS[unit])]
    for name in wanted:
        for package, first in re.findall(r"(?m)^ *from (cerflow\.[\w.]+) import (\w*)", texts[name]):
            wanted += {package, f"{package}.{first}"} & texts.keys() - {*wanted}
    listed = [(kernel.name, kernel.arguments, kernel.results, kernel.inner) for kernel in UNITS[unit]]
    depends = [texts[name] for name in sorted({*wanted, _SELF})], listed, version("numba"), version("llvmlite")
    return hashlib.sha256(repr(depends).encode()).hexdigest()[:16]


def make(unit: str, machine: str, paths: Mapping[str, str]) -> None:
    """Write the objects of a unit for levels of processors of a machine (empty: this one)."""
    # A compilation needs its millions of objects to the end.
    gc.disable()
    _only_write()
    whole, names = llvm.parse_assembly(""), {}
    for kernel in UNITS[unit]:
        function = getattr(import_module(f"{PACKAGE}.{kernel.where}"), kernel.name)
        signature = types.int64(*[types.int64] * len(kernel.arguments))
        if not kernel.inner:
            function, signature = _of_row(kernel, function), types.int64(types.CPointer(types.int64))
        compiled: Any = cfunc(signature, **OPTIONS)(function)
        whole.link_in(llvm.parse_assembly(re.sub(_REPORTING, _TRAP, compiled.inspect_llvm())))
        names[compiled.native_name] = kernel.name
    for processor, path in paths.items():
        module = whole.clone()
        for value in (*module.functions, *module.global_variables):
            if value.name in names:
                value.name = symbol(names[value.name], processor)
            elif not value.is_declaration:
                value.linkage = "internal"
        keep(Path(path), object_of(module, machine, processor))


def _only_write() -> None:
    """Have Numba write LLVM's text alone, without optimising it or making code for this process, where nothing runs."""
    left_out = {
        codegen.JITCodeLibrary: ("_optimize_functions", "_optimize_final_module", "_finalize_specific"),
        codegen.JITCPUCodegen: ("_add_module", "set_env"),
    }
    for kind, methods in left_out.items():
        for method in methods:
            setattr(kind, method, lambda *_: None)
    address = "get_pointer_to_function"
    setattr(codegen.JITCodeLibrary, address, lambda library, _: library._ensure_finalized() or 0)


def object_of(module: Any, machine: str, processor: str) -> bytes:
    """The object of a module, which is optimised for a processor of a machine (empty: this one)."""
    target = llvm.Target.from_triple(f"{machine}-unknown-linux-gnu" if machine else llvm.get_process_triple())
    made = target.create_target_machine(cpu=processor, features="", opt=3, reloc="pic", codemodel="default")
    module.triple, module.data_layout = made.triple, str(made.target_data)
    passes = llvm.create_pass_builder(made, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return bytes(made.emit_object(module))


@intrinsic
def _array(_, address, shape, kind):
    result = types.Array(kind.instance_type, shape.count, "C")

    def generate(context, builder, signature, arguments):
        data = builder.inttoptr(arguments[0], context.get_data_type(result.dtype).as_pointer())
        lengths = [builder.extract_value(arguments[1], axis) for axis in range(shape.count)]
        return array_value(context, builder, result, data, lengths)

    return result(address, shape, kind), generate


def _of_row(kernel: Kernel, function: Any) -> Any:
    """A kernel as a function of a pointer to its row."""
    words, names, given = map("row[{}]".format, count()), {"array": _array, "function": function}, []
    for k, (dtype, axes) in enumerate(kernel.arguments):
        names[f"kind{k}"], word = from_dtype(dtype), next(words)
        shape = "".join(f"{next(words)}, " for _ in range(axes))
        given.append(f"array({word}, ({shape}), kind{k})" if axes else f"kind{k}({word})")
    results = [f"{next(words)} = found[{k}]" for k in range(1, kernel.results)]
    found = ("0", "found", "found[0]")[min(kernel.results, 2)]
    lines = [f"found = function({', '.join(given)})", *results, f"return {found}"]
    exec("\n    ".join(["def called(row):", *lines]), names)
    return names["called"]


def main(machine: str = "") -> None:
    """Build the library of the package, with progress, if it is not there."""
    logging.basicConfig(level=logging.INFO, format="cerflow: %(message)s")
    path = Path(str(files(PACKAGE)), library_name(machine))
    if path.exists():
        return
    for old in path.parent.glob("*.so"):
        old.unlink()
    if not build(path, processors(machine), machine):
        sys.exit("cerflow: 'cc', which links the kernels, is missing: install a C compiler, or pip install ziglang")


if __name__ == "__main__":
    main(*sys.argv[1:])
