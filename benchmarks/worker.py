"""The process that runs cerflow: a request is one line of JSON, and so is its answer.

A request has the ``stream`` (a description), and either a ``query`` with the ``mode`` of reading its matches, or the
``columns`` of a floor. Queries are compiled before the time is taken; pushing all events and reading all matches is
what is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

import cerflow
from benchmarks.floor import floor
from benchmarks.processes import answer_lines, forget_peak, peak
from benchmarks.streams import Events, load
from cerflow.language.select import Projection, ProjectionKind

__all__ = ["answer", "main"]

_PAGE_MB = 4096 / 1e6
#: Resident memory of this process without events: Python, Arrow, NumPy, cerflow and its first kernels.
_libraries_mb = 0.0
#: What is computed of the matches of an event.
_SUM = ("SELL", "price", "sum")


class _WithoutPandas(MetaPathFinder):
    """cerflow does without pandas; Arrow would import it, 30 MB, wherever it happens to be installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ImportError("pandas is not used here")


def main() -> None:
    """Answer the requests on standard input until it ends."""
    global _libraries_mb
    sys.meta_path.insert(0, _WithoutPandas())
    # One core is what the bars speak of; Arrow would take all for some conversions.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # A first match loads what all queries need.
    cerflow.parse("SELECT * WHERE A ; B").match([{"type": "A"}, {"type": "B"}]).to_arrow()
    _libraries_mb = _resident()
    answer_lines(answer)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The measurement that a request asks for."""
    # The peak of one question should not be that of the questions before it.
    pa.default_memory_pool().release_unused()
    events = load(request["stream"])
    if "columns" in request:
        return {"seconds": sum(floor(chunk, request["columns"]) for chunk in events.chunks())}
    return _recognise(events, request["query"], request.get("language", "ceql"), request["mode"])


def _recognise(events: Events, text: str, language: str, mode: str) -> dict[str, Any]:
    begin = time.perf_counter()
    query = cerflow.parse(text, language=language)
    if mode == "detect":
        query = cerflow.Query(replace(query.tree, projection=Projection(ProjectionKind.NONE)))
    recognizer = query.recognizer(events.schema, time=events.time)
    compiled = time.perf_counter() - begin
    if mode == "threads" or events.is_table:
        return _of_table(query, events, 2 if mode == "threads" else 1)
    if mode == "apart":
        return _apart(recognizer, events)
    found, pushed, seconds, processor = 0, 0, 0.0, 0.0
    #: After each chunk: events and seconds so far, and resident memory.
    course: list[tuple[int, float, float]] = []
    gathered = 0.0
    #: Resident memory with the events, and the most of it while they are recognised.
    held, most = None, 0.0
    #: The sum of the positions of detecting events, where nothing else is asked for.
    where = 0
    for chunk in events.chunks():
        forget_peak()
        held = _resident() if held is None else held
        used, begin = time.process_time(), time.perf_counter()
        matches = recognizer.push(chunk)
        if mode == "count":
            found += matches.count()
        elif mode == "aggregate":
            found += matches.aggregate({"n": "count", "s": _SUM}).num_rows
        elif mode == "first":
            found += matches.first(1, by=_SUM).count()
        elif mode == "sample":
            found += matches.sample(1, seed=1).count()
        else:
            form: Literal["structs", "dictionary"] = "structs" if mode == "structs" else "dictionary"
            for batch in matches.to_batches(events=form):
                found += batch.num_rows
                where += pc.sum(batch["detected_at"]).as_py() if mode == "detect" else 0
        seconds += time.perf_counter() - begin
        processor += time.process_time() - used
        gathered += _gathering(matches) if mode == "structs" else 0.0
        pushed += chunk.num_rows
        course.append((pushed, seconds, _resident()))
        most = max(most, peak() or 0.0)
    return {
        "events": pushed,
        # Beyond what JSON readers agree on; as text no digit is lost.
        "matches": str(found),
        "seconds": seconds,
        "processor": processor,
        "compile": compiled,
        "course": _thinned(course),
        "live": recognizer.live,
        "gather": gathered,
        "memory": _memory(held or 0.0, most),
        **({"where": where} if mode == "detect" else {}),
    }


def _apart(recognizer: cerflow.Recognizer, events: Events) -> dict[str, Any]:
    """All but the last event, what is remembered then (MB of a snapshot), the last one, and all matches written."""
    table = pa.concat_tables(events.chunks())
    used, begin = time.process_time(), time.perf_counter()
    found = sum(batch.num_rows for batch in recognizer.push(table.slice(0, table.num_rows - 1)).to_batches())
    before, processor = time.perf_counter() - begin, time.process_time() - used
    remembered = len(recognizer.snapshot()) / 1e6
    used, begin = time.process_time(), time.perf_counter()
    matches = recognizer.push(table.slice(table.num_rows - 1))
    last = time.perf_counter()
    found += sum(batch.num_rows for batch in matches.to_batches(events="dictionary"))
    end = time.perf_counter()
    return {
        "events": table.num_rows,
        "matches": str(found),
        "seconds": before + last - begin,
        "processor": processor + time.process_time() - used,
        "enumeration": end - last,
        "remembered": remembered,
    }


def _memory(held: float, most: float | None) -> float | None:
    """The most memory in MB while events were recognised, without the events and all else that was there before."""
    return most - held + _libraries_mb if held and most else None


def _of_table(query: cerflow.Query, events: Events, threads: int) -> dict[str, Any]:
    """So many threads on the whole stream, behind which no event can come."""
    (table,) = events.chunks()
    # What compiles the query: the types that occur count, and the first event alone has too few.
    query.match(table.slice(0, 1000), time=events.time).count()
    forget_peak()
    held = _resident()
    used, begin = time.process_time(), time.perf_counter()
    found = query.match(table, time=events.time, threads=threads).count()
    seconds, processor = time.perf_counter() - begin, time.process_time() - used
    answer = {"events": table.num_rows, "matches": str(found), "seconds": seconds, "processor": processor}
    return answer | {"memory": _memory(held, peak())}


def _gathering(matches: cerflow.Matches) -> float:
    """Seconds in which NumPy takes the columns of all events of all matches; of texts the numbers in dictionaries."""
    seconds = 0.0
    for batch in matches.to_batches(events="dictionary"):
        events = batch.column("events").values
        rows = events.indices.to_numpy()
        columns = [c.indices if pa.types.is_dictionary(c.type) else c for c in events.dictionary.flatten()]
        arrays = [c.to_numpy() for c in columns if pa.types.is_primitive(c.type)]
        begin = time.perf_counter()
        for array in arrays:
            array.take(rows)
        seconds += time.perf_counter() - begin
    return seconds


def _thinned(course: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """About ten points of a course, the last one among them."""
    step = max(1, len(course) // 10)
    return course[step - 1 :: step]


def _resident() -> float:
    """Resident memory of this process in MB, where the system tells."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE_MB
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()
