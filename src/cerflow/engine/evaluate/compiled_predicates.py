"""Users' functions compiled by Numba, if possible."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from cerflow.base.errors import PerformanceWarning, warn
from cerflow.base.schema import ValueKind
from cerflow.language.predicates.predicate import Predicate

#: Numba's names of the types of arguments.
_TYPES = {ValueKind.INTEGER: "int64", ValueKind.FLOAT: "float64", ValueKind.BOOLEAN: "boolean"}
#: The compiled function, or why there is none, for each combination of kinds of arguments.
_known: WeakKeyDictionary[Predicate, dict[tuple[ValueKind, ...], Any]] = WeakKeyDictionary()


def compile_predicate(predicate: Predicate, kinds: Sequence[ValueKind | None]) -> Any:
    """The C function (with an ``address``) of a predicate for arguments of these kinds (None: a whole event).

    None if it has to run as plain Python; this gives one `PerformanceWarning`, unless it was requested.
    """
    if not predicate.compile:
        return None
    known = _known.setdefault(predicate, {})
    key = tuple(ValueKind.OTHER if kind is None else kind for kind in kinds)
    if key not in known:
        known[key] = _compile(predicate, kinds)
        if isinstance(known[key], str):
            text = f"predicate '{predicate.name}' runs as plain Python, which is slow: {known[key]} "
            warn(PerformanceWarning(f"{text}(compile=False suppresses this warning)"))
    return None if isinstance(known[key], str) else known[key]


def _compile(predicate: Predicate, kinds: Sequence[ValueKind | None]) -> Any:
    """The compiled function, or why there is none."""
    for kind in kinds:
        if kind not in _TYPES:
            return f"it gets {'a whole event' if kind is None else f'a {kind}'}"
    # Import Numba only here, as that takes long.
    try:
        from numba import types
        from numba.core.errors import NumbaWarning
    except ImportError as error:
        return f"Numba cannot be imported ({error}); pip install 'cerflow[compile]' installs it"

    from cerflow.engine.kernels.base.entries import entry

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            return entry(predicate.function, [getattr(types, _TYPES[kind]) for kind in kinds if kind is not None])
    except Exception as error:
        # Python can still run a function that Numba rejects for any reason.
        return f"Numba cannot compile it: {_reason(error)}"


def _reason(error: Exception) -> str:
    """The line of Numba's message that names the problem."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "During:", "File", "-", "<"))]
    return said[0] if said else type(error).__name__
