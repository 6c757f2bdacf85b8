"""The process that runs Polars: a request is one line of JSON with ``stream`` and ``question``, and so is its answer.

Each question counts the matches of a query of the suite *dataframes* on a frame of ticks, or of *everyday*.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from benchmarks.peers import polars_everyday
from benchmarks.processes import answer_lines
from benchmarks.streams import load

__all__ = ["answer", "main"]

_SELL, _BUY = pl.col("type") == "SELL", pl.col("type") == "BUY"
#: Polars leaves a condition away that always holds.
_Condition = pl.Expr | bool
_NAME, _PRICE, _TIME = pl.col("name"), pl.col("price"), pl.col("stock_time")


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answer_lines(answer)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The number of matches, and the time that counting took."""
    ticks = _frame(json.dumps(request["stream"]))
    used, begin = time.process_time(), time.perf_counter()
    ticks_asked = request["stream"]["kind"] == "stocks"
    question = (QUESTIONS if ticks_asked else polars_everyday.QUESTIONS)[request["question"]]
    found = question(ticks.lazy(), request["window"]) if "window" in request else question(ticks.lazy())
    seconds, processor = time.perf_counter() - begin, time.process_time() - used
    return {"events": ticks.height, "matches": str(found), "seconds": seconds, "processor": processor}


@lru_cache(maxsize=2)
def _frame(stream: str) -> pl.DataFrame:
    (table,) = load(json.loads(stream)).chunks()
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def sequence(ticks: pl.LazyFrame, window: int) -> int:
    """An INTC sold, a RIMM bought, a QQQ bought."""
    return _buckets(ticks, window, [_SELL & (_NAME == "INTC"), _BUY & (_NAME == "RIMM"), _BUY & (_NAME == "QQQ")])


def rise3(ticks: pl.LazyFrame, window: int) -> int:
    """An INTC sold and two bought, each dearer than the one before."""
    steps = [kind & (_NAME == "INTC") for kind in (_SELL, _BUY, _BUY)]
    return _buckets(ticks, window, steps, pl.col("bp") > pl.col("ap"), pl.col("cp") > pl.col("bp"))


def _buckets(
    ticks: pl.LazyFrame, window: int, steps: Sequence[pl.Expr], second: _Condition = True, third: _Condition = True
) -> int:
    """Joins on buckets of time as long as the window: each pair is in one bucket, or in two neighbours."""
    some = ticks.with_row_index("i").filter(pl.any_horizontal(*steps))
    a, b, c = (some.filter(step) for step in steps)
    bucket = _TIME // window
    begins = [a.select(ai="i", at=_TIME, ap=_PRICE, bucket=bucket + later) for later in (0, 1)]
    pairs = (
        pl.concat(begins, how="vertical_relaxed")
        .join(b.select(bi="i", bt=_TIME, bp=_PRICE, bucket=bucket), on="bucket")
        .filter((pl.col("bi") > pl.col("ai")) & (pl.col("bt") - pl.col("at") < window) & second)
        .drop("bucket")
    )
    both = pl.concat(
        [pairs.with_columns(bucket=pl.col("at") // window + later) for later in (0, 1)], how="vertical_relaxed"
    )
    found = both.join(c.select(ci="i", ct=_TIME, cp=_PRICE, bucket=bucket), on="bucket").filter(
        (pl.col("ci") > pl.col("bi")) & (pl.col("ct") - pl.col("at") < window) & third
    )
    return _number(found.select(pl.len()))


def following(ticks: pl.LazyFrame) -> int:
    """ASOF joins: each event of a step with the next one of the following step."""
    rows = ticks.with_row_index("i")
    found = rows.filter(_SELL & (_NAME == "INTC")).select("i")
    for name in ("RIMM", "QQQ"):
        step = rows.filter(_BUY & (name == _NAME)).select("i", next="i")
        found = found.join_asof(step, on="i", strategy="forward", allow_exact_matches=False)
        found = found.filter(pl.col("next").is_not_null()).select(i="next").set_sorted("i")
    return _number(found.select(pl.len()))


def strict(ticks: pl.LazyFrame) -> int:
    """Columns of truth values, shifted."""
    sell, buy = pl.col("sell"), pl.col("buy")
    return _number(ticks.select(sell=_SELL, buy=_BUY).select((sell & buy.shift(-1) & sell.shift(-2)).sum()))


def strict_name(ticks: pl.LazyFrame) -> int:
    """The same for one name."""
    own = _NAME == "INTC"
    sell, buy = pl.col("sell"), pl.col("buy")
    some = ticks.select(sell=_SELL & own, buy=_BUY & own)
    return _number(some.select((sell & buy.shift(-1) & sell.shift(-2)).sum()))


def v(ticks: pl.LazyFrame) -> int:
    """Shifts in each group; the quickest of four ways (`over`, differences, sorting by name)."""
    up, down = _PRICE.shift(1) < _PRICE, _PRICE.shift(1) > _PRICE
    turn = down.shift(3) & down.shift(2) & up.shift(1) & up
    return _number(ticks.group_by("name").agg(turn.sum().alias("n")).select(pl.col("n").sum()))


def turns(ticks: pl.LazyFrame) -> int:
    """Prices that fall and rise at once; of turns two events apart only every other one, as events are consumed."""
    ordered = ticks.select("name", "price").sort("name", maintain_order=True).with_row_index("i")
    falls = (_NAME.shift(2) == _NAME) & (_PRICE.shift(1) < _PRICE.shift(2)) & (_PRICE.shift(1) < _PRICE)
    found = ordered.filter(falls).select("name", i=pl.col("i").cast(pl.Int64))
    begins = ((pl.col("i") - pl.col("i").shift(1) != 2) | (_NAME.shift(1) != _NAME)).fill_null(True)
    runs = found.group_by(begins.cum_sum()).agg(n=pl.len())
    return _number(runs.select(((pl.col("n") + 1) // 2).sum()))


def _number(frame: pl.LazyFrame) -> int:
    return int(frame.collect().item())


#: The questions by the names of the suite's queries.
QUESTIONS: dict[str, Callable[..., int]] = {
    "sequence": sequence,
    "rise3": rise3,
    "next": following,
    "strict": strict,
    "strict, name": strict_name,
    "v": v,
    "turns, max, consumed": turns,
}


if __name__ == "__main__":
    main()
