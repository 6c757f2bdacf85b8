"""Small measurements that need a fresh process: ``python -m benchmarks.probes NAME [ARGUMENT …]`` prints JSON.

What a probe measures is imported by the probe itself, so that the time of imports can be told from the rest.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["batches", "compiling", "first_match", "kernels", "main", "push"]

#: Single events that are pushed, and the most seconds for it.
_PUSHED = 20_000
_PUSHING = 5.0
#: Events of a batch that is large.
_LARGE = 1 << 16


def kernels() -> dict[str, Any]:
    """Seconds to compile all kernels as a first match does; the cache (``CERFLOW_CACHE_DIR``) must be empty."""
    # No public name compiles kernels that the package has.
    from cerflow.engine.kernels.base.building import build
    from cerflow.engine.kernels.base.library import own_processor

    with TemporaryDirectory() as folder:
        begin = time.perf_counter()
        build(Path(folder, "kernels.so"), [own_processor()])
        return {"seconds": time.perf_counter() - begin}


def first_match(query: str) -> dict[str, Any]:
    """Seconds of the imports, and then from the text of a query to its first match."""
    begin = time.perf_counter()
    import cerflow

    imported = time.perf_counter()
    events = [{"type": kind, "v": value} for value, kind in enumerate("ABAB")]
    first = next(iter(cerflow.parse(query).match(events)))
    return {"imports": imported - begin, "seconds": time.perf_counter() - imported, "found": first["detected_at"]}


def compiling(stream: str, *queries: str) -> dict[str, Any]:
    """Seconds from the text of each query to a recogniser that is ready."""
    import cerflow
    from benchmarks.streams import load

    schema = load(json.loads(stream)).schema
    cerflow.parse(queries[0]).recognizer(schema, time="stock_time")
    seconds = []
    for query in queries:
        begin = time.perf_counter()
        cerflow.parse(query).recognizer(schema, time="stock_time")
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds}


def push(query: str, stream: str) -> dict[str, Any]:
    """Seconds of pushing one event and counting its matches: median and 99th percentile of many."""
    import cerflow
    from benchmarks.streams import load

    table = next(load(json.loads(stream)).chunks()).slice(0, _PUSHED)
    batch = table.to_batches()[0]
    recognizer = cerflow.parse(query).recognizer(table.schema, time="stock_time")
    events: list[Any] = table.to_pylist()
    how = "push of a dict"
    try:
        recognizer.push(events[0])
    except (AttributeError, TypeError):
        # Before recognisers took single events, a batch of one row was the way.
        events = [batch.slice(row, 1) for row in range(batch.num_rows)]
        how = "push of a batch with one row"
        recognizer = cerflow.parse(query).recognizer(table.schema, time="stock_time")
    seconds = []
    end = time.monotonic() + _PUSHING
    for event in events[1:]:
        begin = time.perf_counter()
        recognizer.push(event).count()
        seconds.append(time.perf_counter() - begin)
        if time.monotonic() > end:
            break
    # The first ones load kernels.
    seconds = sorted(seconds[len(seconds) // 10 :])
    return {
        "median": statistics.median(seconds),
        "99th percentile": seconds[int(0.99 * len(seconds))],
        "how": how,
    }


def batches(query: str, stream: str, size: str) -> dict[str, Any]:
    """Seconds of pushing a batch of some events and counting its matches, less what they cost in large batches."""
    import cerflow
    from benchmarks.streams import load

    table = next(load({**json.loads(stream), "layout": "encoded"}).chunks())
    seconds = {}
    for rows in (_LARGE, int(size), _LARGE, int(size)):
        recognizer = cerflow.parse(query).recognizer(table.schema, time="stock_time")
        parts = table.to_batches(max_chunksize=rows)
        begin = time.perf_counter()
        for part in parts:
            recognizer.push(part).count()
        seconds[rows] = (time.perf_counter() - begin) / table.num_rows
    return {"beyond": (seconds[int(size)] - seconds[_LARGE]) * int(size)}


def main() -> None:
    """Run the probe that the command line names."""
    probes: dict[str, Callable[..., dict[str, Any]]] = {
        "kernels": kernels,
        "first-match": first_match,
        "compiling": compiling,
        "push": push,
        "batches": batches,
    }
    print(json.dumps(probes[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
