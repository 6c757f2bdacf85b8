"""The kernels that only some queries need."""

from __future__ import annotations

from cerflow.engine.kernels.choose import choose, settle
from cerflow.engine.kernels.jit import by_address
from cerflow.engine.kernels.programs import ask
from cerflow.engine.kernels.sets import group_by_labels
from cerflow.engine.layout import O_CHOOSE, O_GROUPED, O_PROGRAMS, O_SETS, O_SETTLE, O_STRATEGY, Tables

__all__ = ["prepare"]


def prepare(tables: Tables) -> None:
    """Compile or load what a query needs, and put the addresses into its tables."""
    options = tables.options
    if len(tables.code) or len(tables.products):
        options[O_PROGRAMS] = by_address(ask, 6).address
    if options[O_GROUPED]:
        options[O_SETS] = by_address(group_by_labels, 7).address
    if options[O_STRATEGY]:
        options[O_CHOOSE] = by_address(choose, 6).address
        options[O_SETTLE] = by_address(settle, 3).address
