"""The kernels that only some queries need, called by their addresses."""

from __future__ import annotations

from collections.abc import Callable

from cerflow.engine.kernels.base.jit import by_address
from cerflow.engine.kernels.scan.programs import compute
from cerflow.engine.kernels.state.lists import enter
from cerflow.engine.kernels.step.bytecode import call_predicate
from cerflow.engine.kernels.step.choose import choose, let_go, settle
from cerflow.engine.kernels.step.sets import group_by_labels
from cerflow.engine.layout import (
    O_CHOOSE,
    O_ENTER,
    O_GROUPED,
    O_LET_GO,
    O_PICK,
    O_PROGRAMS,
    O_SETS,
    O_SETTLE,
    O_STRATEGY,
    TableArrays,
)

__all__ = ["COMPUTE", "prepare_all", "prepare_kernels"]

#: The places of their addresses in the options of a query, and the numbers of their arguments.
_UNITS = {
    O_PROGRAMS: (call_predicate, 6),
    O_SETS: (group_by_labels, 7),
    O_CHOOSE: (choose, 6),
    O_SETTLE: (settle, 4),
    O_LET_GO: (let_go, 3),
    O_ENTER: (enter, 6),
}
#: The one of scans.
COMPUTE = (compute, 4)


def prepare_kernels(tables: TableArrays) -> None:
    """Compile or load the kernels that a query needs, and put their addresses into its tables."""
    options = tables.options
    needed: list[int] = []
    if len(tables.code) or len(tables.products):
        needed.append(O_PROGRAMS)
    if options[O_GROUPED]:
        needed.append(O_SETS)
    if options[O_STRATEGY]:
        needed += [O_CHOOSE, O_SETTLE, O_LET_GO]
    if options[O_PICK]:
        needed.append(O_ENTER)
    for option in needed:
        options[option] = by_address(*_UNITS[option])


def prepare_all(*functions: Callable[..., object]) -> None:
    """Compile or load all of these kernels, or those of some functions."""
    for function, arguments in (*_UNITS.values(), COMPUTE):
        if not functions or function in functions:
            by_address(function, arguments)
