"""The predicates that random conditions call: compiled and plain ones, of every kind of value, of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cerflow
from cerflow.language.predicates.registry import using


def close(a: float, b: float) -> bool | None:
    if a == 2:
        return None
    return abs(a - b) <= 1


def ordered(a: Any, b: Any = "", c: Any = "") -> bool | None:
    """Depends on every value and on its type, so that nothing may come in another form."""
    shown = [repr(dict(sorted(v.items()))) if isinstance(v, Mapping) else repr(v) for v in (a, b, c)]
    total = sum(map(ord, "/".join(shown)))
    return None if total % 7 == 0 else total % 7 > 2


def some(values: Any, least: int = 0) -> Any:
    assert values.dtype in (np.int64, np.float64)
    return np.ma.MaskedArray(values >= least, mask=values == 2)


def few(texts: Any, most: int = 2) -> Any:
    assert texts.type == pa.string()
    return pc.if_else(pc.equal(texts, "q_"), None, pc.less(pc.utf8_length(texts), most))


def narrow(values: Any, most: Any = 2) -> bool | None:
    if len(values) == 3:
        return None
    return len(values) == 0 or bool((values - values[0] <= most).all())


def weighed(some: Any, more: Any, factor: Any = 1) -> bool | None:
    """A predicate of several sets that depends on the values and their order in each set."""
    events = isinstance(factor, pa.RecordBatch)
    last = [sorted(event.items()) for event in factor.to_pylist()] if events else factor
    total = sum(map(ord, "/".join(repr(v if isinstance(v, int) else list(v)) for v in (some, more, last))))
    return None if total % 7 == 0 else total % 7 > 2


def alike(texts: Any, other: Any = 1) -> bool:
    assert texts.type in (pa.string(), pa.float64())  # nothing has no type
    return len(set(texts.to_pylist())) <= (other if isinstance(other, int) else len(other))


def trace(state: str, a: Any, b: Any = "") -> str:
    return state + repr(dict(a) if isinstance(a, Mapping) else a) + repr(b)


def told(state: str) -> bool | None:
    total = sum(map(ord, state))
    return None if total % 7 == 0 else total % 7 > 2


@contextmanager
def registered() -> Iterator[None]:
    with using(cerflow.registered_predicates()):
        cerflow.predicate(close)
        cerflow.predicate(compile=False)(ordered)
        cerflow.predicate(vectorized=True)(some)
        cerflow.predicate(vectorized="arrow")(few)
        cerflow.predicate(of_set=True)(narrow)
        cerflow.predicate(of_set="arrow")(alike)
        cerflow.predicate(of_set=True)(weighed)
        cerflow.predicate("walk", init="", step=trace, accept=told)
        yield
