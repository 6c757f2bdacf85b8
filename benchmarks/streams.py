"""Streams from their descriptions: stock ticks from a file or the generator, and synthetic streams made in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from benchmarks import everyday_streams
from benchmarks.cases import Stream
from cerflow.examples import smart_homes, stocks, taxis

__all__ = ["Events", "TickFiles", "load", "write_ticks"]

#: Rows of a synthetic stream that are made at a time, and the most that are kept in memory at once.
CHUNK = 1_000_000
KEPT = 2_000_000
#: Columns of the ticks, in the order in which other engines get them.
TICK = ("type", "id", "name", "volume", "price", "stock_time")
#: The other streams of the generators.
_EXAMPLES = {"smart_homes": smart_homes, "taxis": taxis}
#: Plain tables, whose time is ``ts``.
_TABLES = {"shop": everyday_streams.shop, "machines": everyday_streams.machines}


@dataclass(frozen=True)
class Events:
    """The events of a stream as Arrow tables, made chunk by chunk: a stream may be larger than the memory."""

    description: Mapping[str, Any]
    count: int
    time: str | None

    def chunks(self) -> Iterator[pa.Table]:
        """The events, chunk by chunk; ticks and short streams are kept."""
        if self.count <= KEPT or self.description["kind"] == "stocks":
            yield from _kept(_key(self.description))
        else:
            yield from _made(self.description)

    @property
    def is_table(self) -> bool:
        """Whether questions are asked to a plain table as people have them, not to a stream that may go on."""
        return self.description["kind"] in _TABLES

    @property
    def schema(self) -> pa.Schema:
        """The schema of the chunks."""
        return next(self.chunks()).schema


def load(description: Mapping[str, Any]) -> Events:
    """The events of a stream's description (`Stream.description`)."""
    if description["kind"] == "stocks":
        table = next(iter(_kept(_key(description))))
        return Events(description, table.num_rows, "stock_time")
    clocks = dict.fromkeys(_EXAMPLES, "timestamp") | dict.fromkeys(_TABLES, "ts")
    clock = clocks.get(description["kind"], "t" if description.get("every") else None)
    return Events(description, int(description["events"]), clock)


def write_ticks(description: Mapping[str, Any], path: Path) -> None:
    """Write a stream as a CSV file with the columns of stock ticks, for the other engines."""
    plain = {**description, "layout": "text"}
    tables = [_ticks(plain)] if description["kind"] == "stocks" else map(_as_ticks, load(plain).chunks())
    pyarrow.csv.write_csv(pa.concat_tables(tables), path, pa.csv.WriteOptions(quoting_style="none"))


class TickFiles:
    """Streams as CSV files in a folder, each written when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[tuple[tuple[str, Any], ...], Path] = {}

    def path(self, stream: Stream) -> Path:
        """The file of a stream; engines repeat it themselves as often as the stream says."""
        once = {name: value for name, value in stream.description.items() if name != "times"}
        path = self._paths.setdefault(_key(once), self._folder / f"stream-{len(self._paths)}.csv")
        if not path.exists():
            write_ticks(once, path)
        return path


def _as_ticks(table: pa.Table) -> pa.Table:
    """The columns of ticks, made of those that the patterns read of another stream."""
    rows = table.num_rows
    number = pa.array(np.arange(1, rows + 1))
    columns = {
        "type": table["type"],
        "id": number,
        "name": pa.array([""] * rows),
        "volume": number,
        "stock_time": number,
    }
    columns["price"] = pa.array(np.zeros(rows))
    if "household" in table.column_names:
        columns |= {"name": pc.cast(table["household"], pa.string()), "price": table["value"]}
    if "pickup_zone" in table.column_names:
        route = pc.binary_join_element_wise(table["pickup_zone"], table["dropoff_zone"], " to ")
        columns |= {"name": route, "price": table["total_amount"]}
    if "timestamp" in table.column_names:
        columns["stock_time"] = table["timestamp"]
    return pa.table({name: columns[name] for name in TICK})


def _key(description: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(description.items()))


@lru_cache(maxsize=4)
def _kept(key: tuple[tuple[str, Any], ...]) -> list[pa.Table]:
    return list(_made(dict(key)))


def _made(description: Mapping[str, Any]) -> Iterator[pa.Table]:
    if description["kind"] == "stocks":
        yield _ticks(description)
    elif (make := {**_EXAMPLES, **_TABLES}.get(description["kind"])) is not None:
        table = make(description["events"])
        texts = [name for name in table.column_names if pa.types.is_string(table.schema.field(name).type)]
        yield _laid_out(table, texts, description)
    else:
        yield from _synthetic(**{name: value for name, value in description.items() if name != "kind"})


def _ticks(description: Mapping[str, Any]) -> pa.Table:
    """Stock ticks of a CSV file, or of the generator where no path is given."""
    path, events = description.get("path"), description.get("events")
    if path is None:
        table = stocks(events=events or 224_473)
    else:
        table = pyarrow.csv.read_csv(path)
        table = table.rename_columns(["type" if name == "event_type" else name for name in table.column_names])
    table = _repeated(table.select(list(TICK)).slice(0, events), int(description.get("times", 1)))
    return _laid_out(table, ["type", "name"], description)


def _repeated(ticks: pa.Table, times: int) -> pa.Table:
    """The ticks so many times one after another, a minute apart."""
    moments = ticks.column("stock_time")
    if times == 1:
        return ticks
    span = moments[-1].as_py() - moments[0].as_py() + 60_000
    place = ticks.column_names.index("stock_time")
    parts = [ticks.set_column(place, "stock_time", pc.add(moments, k * span)) for k in range(times)]
    return pa.concat_tables(parts)


def _laid_out(table: pa.Table, texts: list[str], description: Mapping[str, Any]) -> pa.Table:
    """The table in one piece, its columns of text in the layout that is wanted."""
    for name in texts:
        column = table.column(name).combine_chunks()
        if description.get("layout") == "encoded":
            column = column.dictionary_encode()
        table = table.set_column(table.column_names.index(name), name, column)
    return table.combine_chunks()


def _synthetic(
    events: int,
    types: str = "A,B,C,D",
    weights: str | None = None,
    keys: int = 0,
    values: int = 0,
    every: int = 0,
    last: str | None = None,
    seed: int = 1,
    layout: str = "text",
) -> Iterator[pa.Table]:
    """Events of random types, and if asked for a ``key`` and a value ``v``, all independent of each other.

    ``types`` and ``weights`` are separated by commas; ``last`` forces the type of the last event. With ``every`` there
    is an event every this many microseconds, at time ``t``.
    """
    names = types.split(",")
    shares = np.array([float(w) for w in weights.split(",")] if weights else [1.0] * len(names))
    for number, start in enumerate(range(0, events, CHUNK)):
        rows = min(CHUNK, events - start)
        random = np.random.default_rng((seed, number))
        codes = random.choice(len(names), size=rows, p=shares / shares.sum()).astype(np.int32)
        if last is not None and start + rows == events:
            codes[-1] = names.index(last)
        kinds = pa.DictionaryArray.from_arrays(codes, pa.array(names))
        columns: dict[str, Any] = {"type": kinds if layout == "encoded" else kinds.cast(pa.string())}
        if keys:
            columns["key"] = random.integers(0, keys, rows)
        if values:
            columns["v"] = random.integers(0, values, rows).astype(np.float64)
        if every:
            columns["t"] = pa.array(np.arange(start, start + rows) * every, pa.timestamp("us"))
        yield pa.table(columns)
