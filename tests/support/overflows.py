"""Kernels in which each operation that must not overflow notes where it did: ``python -m support.overflows CASES``.

Numba marks ``+``, ``-`` and ``*`` on signed integers as ``nsw``: LLVM may assume that they do not overflow. Here each
of them is replaced in the text of kernels by ``llvm.s*.with.overflow``, and a store of what came out. Then random
queries run over values at the limits. The output has a line for each operation that overflowed.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cerflow.engine.kernels.base import building, calling, library
from cerflow.engine.kernels.base.parts import BUILDING
from cerflow.engine.kernels.table import UNITS
from support.conformance import drawn
from support.generators.conditions import Fragment
from support.runners import engine_refuses, one_batch, one_by_one

_OPERATION = re.compile(r"(%\S+) = (add|sub|mul) nsw (i64|i32) ([^,]+), (\S+)")
_SITES: list[str] = []
#: One level of processors is enough.
_LEVELS = library.processors()[:1]
#: For each operation of a unit whether it overflowed, and operands with which it did
_MOST = 100_000
_NOTES = f"[{3 * _MOST} x i64]"


def _watched(text: str) -> str:
    """The text of a module in which operations note their overflows."""
    lines, function, used = [], "", set()
    for line in text.splitlines():
        if line.startswith("define"):
            function = re.sub(r"B\d.*", "", re.findall(r'@"?([^"(]+)', line)[0])
        found = _OPERATION.fullmatch(line.strip())
        if not found:
            lines.append(line)
            continue
        result, name, kind, *operands = found.groups()
        used.add((name, kind))
        here = f"%noted{len(_SITES)}"
        lines += [
            f"{here}.both = call {{{kind}, i1}} @llvm.s{name}.with.overflow.{kind}"
            f"({kind} {operands[0]}, {kind} {operands[1]})",
            f"{result} = extractvalue {{{kind}, i1}} {here}.both, 0",
            f"{here}.beyond = extractvalue {{{kind}, i1}} {here}.both, 1",
        ]
        at = 24 * len(_SITES)
        for k, value in enumerate(("1", *operands)):
            one = f"{here}.{k}"
            lines.append(f"{one}.to = getelementptr i8, ptr @notes, i64 {at + 8 * k}")
            lines.append(f"{one}.old = load i64, ptr {one}.to")
            if k and kind == "i32":
                lines.append(f"{one}.wide = sext i32 {value} to i64")
                value = f"{one}.wide"
            lines.append(f"{one}.new = select i1 {here}.beyond, i64 {value}, i64 {one}.old")
            lines.append(f"store i64 {one}.new, ptr {one}.to")
        _SITES.append(f"{function}: {line.strip()}")
    for name, kind in used:
        intrinsic = f"llvm.s{name}.with.overflow.{kind}"
        if not re.search(rf'^declare .*@"?{re.escape(intrinsic)}"?\(', text, re.MULTILINE):
            lines.append(f"declare {{{kind}, i1}} @{intrinsic}({kind}, {kind})")
    return "\n".join([*lines, f"@notes = linkonce_odr global {_NOTES} zeroinitializer"]) + "\n"


def _compile(unit: str, path: Path) -> None:
    """Write the object of a unit, whose notes have its name, and the places of its operations."""
    parsed, made = llvm.parse_assembly, building.object_of

    def noted(module: Any, machine: str, processor: str) -> bytes:
        # They are internal by now, so LLVM does not look them up.
        notes = next(value for value in module.global_variables if value.name == "notes")
        notes.name, notes.linkage = f"notes_{unit}", "external"
        return made(module, machine, processor)

    building.llvm = SimpleNamespace(**vars(llvm) | {"parse_assembly": lambda text: parsed(_watched(text))})
    building.object_of = noted
    building.processors = _one_level
    building.make(unit, "", [str(path)])
    path.with_suffix(".json").write_text(json.dumps(_SITES))


def _one_level(machine: str = "") -> tuple[str, ...]:
    return _LEVELS


def _watched_kernels() -> dict[str, tuple[list[str], np.ndarray]]:
    """Let this process use watched kernels; the operations of each unit, and what they note."""
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    found = {}
    with TemporaryDirectory() as folder:
        for unit in UNITS:
            path = Path(folder, f"{unit}.o")
            variables = {**os.environ, BUILDING: "1", "NUMBA_OPT": "0"}
            subprocess.run([sys.executable, "-m", "support.overflows", unit, path], env=variables, check=True)
            engine.add_object_file(llvm.ObjectFileRef.from_data(path.read_bytes()))
            found[unit] = json.loads(path.with_suffix(".json").read_text())
    engine.finalize_object()
    library.processors = _one_level
    calling.load_kernels = lambda: engine.get_function_address
    notes = {unit: engine.get_global_value_address(f"notes_{unit}") for unit in found}
    arrays = {u: np.ctypeslib.as_array((ctypes.c_int64 * (3 * _MOST)).from_address(at)) for u, at in notes.items()}
    _held.append(engine)
    return {unit: (sites, arrays[unit].reshape(-1, 3)[: len(sites)]) for unit, sites in found.items()}


_held: list[object] = []


def _run(cases: int) -> None:
    choices = st.booleans()

    @settings(
        max_examples=cases,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
    )
    @given(st.data())
    def run(data):
        names = ("aggregates", "some", "neighbours", "deadlines", "more")
        query, table = drawn(data, fragment=Fragment(**{name: data.draw(choices) for name in names}, depth=2))
        if not engine_refuses(query, table, time="t"):
            for runner in (one_batch, one_by_one):
                runner(query, table, time="t")

    run()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _compile(sys.argv[1], Path(sys.argv[2]))
        sys.exit()
    watched = _watched_kernels()
    _run(int(sys.argv[1]))
    for operations, notes in watched.values():
        for site, (beyond, *operands) in zip(operations, notes.tolist(), strict=True):
            if beyond:
                print(site, *operands)
    print(f"{sum(len(operations) for operations, _ in watched.values())} operations", file=sys.stderr)
