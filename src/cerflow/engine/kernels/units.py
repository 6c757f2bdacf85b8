"""The kernels that only some queries need."""

from __future__ import annotations

from cerflow.engine.kernels.choose import choose, settle
from cerflow.engine.kernels.jit import address_of_kernel
from cerflow.engine.kernels.programs import ask
from cerflow.engine.kernels.sets import group_by_labels
from cerflow.engine.layout import O_CHOOSE, O_GROUPED, O_PROGRAMS, O_SETS, O_SETTLE, O_STRATEGY, Tables

__all__ = ["prepare"]


def prepare(tables: Tables) -> None:
    """Compile or load what a query needs, and put the addresses into its tables."""
    options = tables.options
    if len(tables.code) or len(tables.products):
        options[O_PROGRAMS] = address_of_kernel(ask, 6)
    if options[O_GROUPED]:
        options[O_SETS] = address_of_kernel(group_by_labels, 7)
    if options[O_STRATEGY]:
        options[O_CHOOSE] = address_of_kernel(choose, 6)
        options[O_SETTLE] = address_of_kernel(settle, 3)
