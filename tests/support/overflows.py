"""Kernels in which each operation that must not overflow notes where it did: ``python -m support.overflows CASES``.

Numba marks ``+``, ``-`` and ``*`` on signed integers as ``nsw``: LLVM may assume that they do not overflow. Here each
of them is replaced in the text of kernels by ``llvm.s*.with.overflow``, and a store of what came out. Then random
queries run over values at the limits. The output has a line for each operation that overflowed.
"""

from __future__ import annotations

import re
import sys
from functools import cache

import llvmlite.binding as llvm
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cerflow.engine.kernels.base import compiling, jit
from cerflow.engine.kernels.base.pipeline import TextLibrary
from support.conformance import drawn
from support.generators.conditions import Fragment
from support.runners import engine_refuses, one_batch, one_by_one

_OPERATION = re.compile(r"(%\S+) = (add|sub|mul) nsw (i64|i32) ([^,]+), (\S+)")
_SITES: list[str] = []
#: For each operation whether it overflowed, and operands with which it did
_FOUND = np.zeros((100_000, 3), np.int64)


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
        at = _FOUND.ctypes.data + _FOUND.strides[0] * len(_SITES)
        for k, value in enumerate(("1", *operands)):
            one = f"{here}.{k}"
            lines.append(f"{one}.to = inttoptr i64 {at + 8 * k} to ptr")
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
    return "\n".join(lines) + "\n"


@cache
def _modules(library):
    texts = library.texts if isinstance(library, TextLibrary) else [library.get_llvm_str()]
    plain = (re.sub(compiling._REPORTING, compiling._TRAP, text) for text in texts)
    return [llvm.parse_assembly(_watched(text) if isinstance(library, TextLibrary) else text) for text in plain]


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
    compiling._modules = _modules
    jit.kept_code = lambda label, compile_it: compile_it()
    _run(int(sys.argv[1]))
    for site, (beyond, *operands) in zip(_SITES, _FOUND.tolist()):
        if beyond:
            print(site, *operands)
    print(f"{len(_SITES)} operations", file=sys.stderr)
