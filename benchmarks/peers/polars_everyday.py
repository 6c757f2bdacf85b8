"""The questions of the suite *everyday* as an expert would ask Polars; each gives the number of matches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import polars as pl

__all__ = ["QUESTIONS"]

_I, _TS, _AMOUNT, _VALUE = pl.col("i"), pl.col("ts"), pl.col("amount"), pl.col("value")
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


def funnel(rows: pl.LazyFrame) -> int:
    """From the rare last step back to the first one."""
    last = _named(_of(rows, "buy"), "c", "user")
    some = last.join(_named(_of(rows, "cart"), "b", "user"), on="user").filter(
        (pl.col("bi") < pl.col("ci")) & (pl.col("bamount") < pl.col("camount")) & (_between("b", "c") < _HOUR)
    )
    found = some.join(_named(_of(rows, "view"), "a", "user"), on="user").filter(
        (pl.col("ai") < pl.col("bi")) & (pl.col("aamount") < pl.col("bamount")) & (_between("a", "c") < _HOUR)
    )
    return _number(found)


def two_countries(rows: pl.LazyFrame) -> int:
    """A join of the purchases of a user."""
    bought = _of(rows, "buy")
    pairs = (
        _named(bought, "a", "user")
        .join(_named(bought, "b", "user"), on="user")
        .filter(
            (pl.col("ai") < pl.col("bi"))
            & (_between("a", "b") < timedelta(minutes=10))
            & (pl.col("acountry") != pl.col("bcountry"))
            & (pl.col("bamount") > 2 * pl.col("aamount"))
        )
    )
    return _number(pairs)


def rising(rows: pl.LazyFrame) -> int:
    """Differences in each group, shifted."""
    up = _VALUE.shift(1) < _VALUE
    return _grouped(rows, "machine", up & up.shift(1) & up.shift(2) & up.shift(3))


def jump(rows: pl.LazyFrame) -> int:
    """Differences in each group."""
    return _grouped(rows, "machine", _VALUE - _VALUE.shift(1) > 1.5)


def abandoned(rows: pl.LazyFrame) -> int:
    """An ASOF join with the next purchase of the user."""
    return _absent(rows, _of(rows, "cart"), _of(rows, "buy"), timedelta(minutes=30))


def dearer(rows: pl.LazyFrame) -> int:
    """A join by user."""
    views = _named(_of(rows, "view").filter(_AMOUNT > 300), "a", "user")
    pairs = _named(_of(rows, "buy").filter(_AMOUNT > 300), "b", "user").join(views, on="user")
    return _number(
        pairs.filter(
            (pl.col("ai") < pl.col("bi")) & (pl.col("bamount") > pl.col("aamount")) & (_between("a", "b") < _DAY)
        )
    )


def following(rows: pl.LazyFrame) -> int:
    """ASOF joins; where the last step is not dear enough, another one from there on."""
    numbered = rows.with_row_index("i").with_columns(_I.cast(pl.Int64))
    first = numbered.filter((pl.col("type") == "login") & (_AMOUNT > 490)).select("i", least=_AMOUNT)
    second = numbered.filter(pl.col("type") == "buy").select("i", next="i")
    open_ = first.join_asof(second, on="i", strategy="forward", allow_exact_matches=False)
    open_ = open_.filter(pl.col("next").is_not_null()).select("least", i="next").sort("i")
    last = numbered.filter((pl.col("type") == "support") & (_AMOUNT > 490)).select("i", next="i", amount="amount")
    left, asked, found = open_.collect(), last.collect(), 0
    while left.height:
        some = left.sort("i").join_asof(asked, on="i", strategy="forward", allow_exact_matches=False)
        some = some.filter(pl.col("next").is_not_null())
        found += int(some.select((pl.col("least") < _AMOUNT).sum()).item())
        left = some.filter(pl.col("least") >= _AMOUNT).select("least", i="next")
    return found


def strict(rows: pl.LazyFrame) -> int:
    """Whole columns, shifted."""
    kind, country = pl.col("type"), pl.col("country")
    found = (kind == "view") & (kind.shift(-1) == "view") & (kind.shift(-2) == "cart")
    found &= (country == country.shift(-1)) & (country == country.shift(-2))
    found &= (_AMOUNT.shift(-1) > _AMOUNT) & (_AMOUNT.shift(-2) > _AMOUNT.shift(-1))
    return int(rows.select(found.sum()).collect().item())


def rare_by_key(rows: pl.LazyFrame) -> int:
    """A join of the few rows by user."""
    some = [_named(_of(rows, kind).filter(_AMOUNT > 480), *named) for kind, named in _STEPS]
    pairs = some[0].join(some[1], on="user")
    return _number(pairs.filter((pl.col("ai") < pl.col("bi")) & (_between("a", "b") < _DAY)))


def pause(rows: pl.LazyFrame) -> int:
    """Differences in each group."""
    return _grouped(rows, "user", _TS - _TS.shift(1) > _DAY)


def silence(rows: pl.LazyFrame) -> int:
    """The next row of each user, by a shift in the group."""
    end = rows.select(_TS.max()).collect().item()
    following_ = rows.select("type", "ts", after=_TS.shift(-1).over("user"))
    alone = pl.col("after").is_null() | (pl.col("after") - _TS >= _HOUR)
    return _number(following_.filter((pl.col("type") == "login") & alone & (end >= _TS + _HOUR)))


def threshold(rows: pl.LazyFrame) -> int:
    """Shifts in each group."""
    return _grouped(rows, "machine", (_VALUE.shift(1) <= 2) & (_VALUE > 2))


def outliers(rows: pl.LazyFrame) -> int:
    """A join of the few rows by inequalities."""
    high = rows.with_row_index("i").filter(_VALUE > 3)
    pairs = _named(high, "a").join_where(
        _named(high, "b"), pl.col("ats") <= pl.col("bts"), pl.col("bts") < pl.col("ats") + timedelta(seconds=1)
    )
    return _number(pairs.filter((pl.col("ai") < pl.col("bi")) & (pl.col("amachine") != pl.col("bmachine"))))


def jump_then_outlier(rows: pl.LazyFrame) -> int:
    """Differences in each group, joined with the few rows."""
    some = rows.with_row_index("i").with_columns(
        before=_VALUE.shift(1).over("machine"), begun=_TS.shift(1).over("machine")
    )
    jumps = _named(some.filter(_VALUE - pl.col("before") > 4), "b", "machine")
    pairs = jumps.join(_named(some.filter(_VALUE > 3), "c", "machine"), on="machine")
    minute = pl.col("cts") - pl.col("bbegun") < timedelta(minutes=1)
    return _number(pairs.filter((pl.col("bi") < pl.col("ci")) & minute))


def same_country(rows: pl.LazyFrame) -> int:
    """A join of the few rows by country."""
    some = [_named(_of(rows, kind).filter(_AMOUNT > 490), name, "country") for kind, name in _LOGINS]
    pairs = some[0].join(some[1], on="country")
    return _number(pairs.filter((pl.col("ai") < pl.col("bi")) & (_between("a", "b") < _HOUR)))


def sum_of_three(rows: pl.LazyFrame) -> int:
    """Shifts in each group, added from the first on, as floats are."""
    return _grouped(rows, "machine", _VALUE.shift(2) + _VALUE.shift(1) + _VALUE > 6)


_STEPS = (("support", ("a", "user")), ("buy", ("b", "user")))
_LOGINS = (("login", "a"), ("buy", "b"))


def _of(rows: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    return rows.with_row_index("i").filter(pl.col("type") == kind)


def _named(rows: pl.LazyFrame, label: str, key: str | None = None) -> pl.LazyFrame:
    """The rows with the names of columns after a label, but for the key."""
    return rows.rename(lambda name: name if name == key else label + name)


def _between(first: str, last: str) -> pl.Expr:
    return pl.col(f"{last}ts") - pl.col(f"{first}ts")


def _absent(rows: pl.LazyFrame, first: pl.LazyFrame, then: pl.LazyFrame, wait: timedelta) -> int:
    end = rows.select(_TS.max()).collect().item()
    after = then.select("user", _I.cast(pl.Int64), after=_TS)
    found = first.with_columns(_I.cast(pl.Int64)).join_asof(
        after, on="i", by="user", strategy="forward", allow_exact_matches=False
    )
    alone = pl.col("after").is_null() | (pl.col("after") - _TS >= wait)
    return _number(found.filter(alone & (_TS + wait <= end)))


def _grouped(rows: pl.LazyFrame, key: str, found: pl.Expr) -> int:
    return int(rows.group_by(key).agg(n=found.sum()).select(pl.col("n").sum()).collect().item())


def _number(found: pl.LazyFrame) -> int:
    return int(found.select(pl.len()).collect().item())


#: The questions by the names of the suite.
QUESTIONS: dict[str, Callable[[pl.LazyFrame], int]] = {
    "funnel": funnel,
    "two countries": two_countries,
    "rising": rising,
    "jump": jump,
    "abandoned": abandoned,
    "dearer": dearer,
    "next": following,
    "strict": strict,
    "rare by key": rare_by_key,
    "pause": pause,
    "silence": silence,
    "threshold": threshold,
    "outliers": outliers,
    "jump, then outlier": jump_then_outlier,
    "same country": same_country,
    "sum of three": sum_of_three,
}
