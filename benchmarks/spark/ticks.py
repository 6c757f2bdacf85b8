"""Stock ticks as a folder of Parquet files, one for each day, made once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cerflow.examples import stocks

__all__ = ["NARROW", "WIDE", "written_ticks"]

#: Ticks of one day, and of one row group.
_DAY = 1_000_000
_ROW_GROUP = 250_000
#: Another number for other data: files of before are not taken then.
_VERSION = 1
_EXCHANGES = ("XNAS", "XNYS", "ARCX", "BATS", "EDGX", "IEXG")
_ACCOUNTS = 20_000
_HALF_A_CENT = 0.005

#: The columns that the queries read, and all columns.
NARROW = ("type", "name", "volume", "price", "time")
WIDE = (*NARROW, "id", "bid", "ask", "exchange", "account", "order", "flags")


def written_ticks(events: int, cache: Path) -> Path:
    """The folder with this many ticks in the order of time; files of the same number are taken from the cache.

    Names of files sort like their days. Types and names are dictionaries in Parquet, times are in UTC.
    """
    folder = cache / f"ticks-{events}-v{_VERSION}"
    if folder.exists():
        return folder
    part = cache / f"{folder.name}.part{os.getpid()}"
    part.mkdir(parents=True)
    for day, start in enumerate(range(0, events, _DAY)):
        table = _day(day, start, min(_DAY, events - start))
        pq.write_table(table, part / f"day-{day:04}.parquet", row_group_size=_ROW_GROUP)
    try:
        part.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(part)
    return folder


def _day(day: int, start: int, events: int) -> pa.Table:
    table = stocks(events=events, seed=day)
    random = np.random.default_rng((day, 1))
    price = table.column("price").to_numpy()
    moments = table.column("time").cast(pa.timestamp("us")).to_numpy() + np.timedelta64(day, "D")
    ids = np.arange(start, start + events)
    columns = {
        "type": table.column("type"),
        "name": table.column("name"),
        "volume": table.column("volume"),
        "price": price,
        "time": pa.array(moments).cast(pa.timestamp("us", "UTC")),
        "id": ids,
        "bid": np.round(price - _HALF_A_CENT, 2),
        "ask": np.round(price + _HALF_A_CENT, 2),
        "exchange": pa.array(_EXCHANGES).take(pa.array(random.integers(0, len(_EXCHANGES), events))),
        "account": _text("A", random.integers(0, _ACCOUNTS, events)),
        "order": _text("ORDER-2024-", ids),
        "flags": random.integers(0, 16, events).astype(np.int32),
    }
    return pa.table({name: columns[name] for name in WIDE})


def _text(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
