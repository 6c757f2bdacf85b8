"""Two plain tables as people have them: what users of a shop do, and what machines measure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["machines", "shop"]

_WEEK = 7 * 86_400_000_000
_TYPES = (("view", 0.7), ("cart", 0.12), ("buy", 0.05), ("support", 0.03), ("login", 0.1))


def shop(events: int, seed: int = 1) -> pa.Table:
    """A week of events (ts, type, user, amount, country): a user has 50 on average, from whatever country."""
    random = np.random.default_rng((seed, events))
    kinds = random.choice(len(_TYPES), events, p=[share for _, share in _TYPES]).astype(np.int32)
    countries = random.integers(0, 30, events).astype(np.int32)
    return pa.table(
        {
            "ts": pa.array(np.sort(random.integers(0, _WEEK, events)), pa.timestamp("us")),
            "type": _texts(kinds, [name for name, _ in _TYPES]),
            "user": random.integers(0, max(events // 50, 1), events),
            "amount": random.integers(0, 50_000, events) / 100,
            "country": _texts(countries, [f"country {n}" for n in range(30)]),
        }
    )


def machines(events: int, seed: int = 1) -> pa.Table:
    """Readings (ts, type, machine, value) of 200 machines in random turn, one a millisecond."""
    random = np.random.default_rng((seed, events))
    return pa.table(
        {
            "ts": pa.array(np.arange(events) * 1000, pa.timestamp("us")),
            "type": _texts(np.zeros(events, np.int32), ["reading"]),
            "machine": random.integers(0, 200, events),
            "value": random.standard_normal(events),
        }
    )


def _texts(codes: np.ndarray, texts: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts)).cast(pa.string())
