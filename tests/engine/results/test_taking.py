"""Values at many places equal those that Arrow takes."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from cerflow.base import limits
from cerflow.engine.results.taking import repeated_or_taken, spelt, taken, taken_or_null

TEXTS = ["", "a", "SELL", "Ärger", "12345678", "123456789", "seventeen letters", "x" * limits.GATHERED_SIZE]


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(limits, "GATHERED_ROWS", 1)


def texts(rng: random.Random, count: int) -> list[str]:
    return rng.choices(TEXTS[: rng.randint(1, len(TEXTS))], k=count)


def value(kind: pa.DataType, number: int) -> object:
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_decimal(kind):
        return Decimal(number)
    return pa.MonthDayNano([number, 1, 2]) if kind == pa.month_day_nano_interval() else number


def columns(rng: random.Random, count: int) -> list[pa.Array]:
    lists = [texts(rng, rng.randint(0, 4)) for _ in range(count)]
    pairs = [texts(rng, 2) for _ in range(count)]
    words = pa.array(texts(rng, count))
    numbers = pa.array([rng.choice([None, 3, -1]) for _ in range(count)], pa.int64())
    kinds = [pa.int8(), pa.uint16(), pa.int32(), pa.float32(), pa.float64(), pa.decimal128(19, 2), pa.decimal256(50, 1)]
    kinds += [pa.bool_(), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.time32("s"), pa.month_day_nano_interval()]
    ordered = words.dictionary_encode()
    plain = [
        *[pa.array([value(kind, rng.randrange(9)) for _ in range(count)], kind) for kind in kinds],
        *[pa.array([rng.choice([None, value(kind, 3)]) for _ in range(count)], kind) for kind in kinds],
        pa.nulls(count),
        pa.array([b"four"] * count, pa.binary(4)),
        pa.DictionaryArray.from_arrays(ordered.indices.cast(pa.int8()), ordered.dictionary, ordered=True),
        pa.array([rng.choice([None, "n"]) for _ in range(count)]).dictionary_encode(),
        words,
        pa.array(lists, pa.list_(pa.string())),
        pa.array(pairs, pa.list_(pa.string())),
        pa.array([[] for _ in range(count)], pa.list_(pa.string())),
        words.dictionary_encode(),
        numbers,
        words.cast(pa.large_string()),
        pa.array([[rng.choice([None, "b"])] for _ in range(count)], pa.list_(pa.string())),
        pa.array([rng.choice([None, "null"]) for _ in range(count)], pa.string()),
        pa.array([None if rng.random() < 0.5 else row for row in lists], pa.list_(pa.string())),
        pa.array([[1, 2]] * count, pa.list_(pa.int32())),
        pa.array(["y" * rng.choice([1, limits.GATHERED_SIZE + 1]) for _ in range(count)]),
    ]
    struct = pa.StructArray.from_arrays(plain, names=[str(k) for k in range(len(plain))])
    holes = pa.StructArray.from_arrays([words], names=["a"], mask=pa.array([rng.random() < 0.5 for _ in range(count)]))
    return [*plain, struct, holes]


@pytest.mark.parametrize("seed", range(40))
def test_values_at_places_are_those_of_arrow(seed):
    rng = random.Random(seed)
    count = rng.randint(3, 40)
    begin, end = sorted(rng.sample(range(count + 1), 2))
    at = np.array(rng.choices(range(end - begin), k=rng.randint(0, 60)), np.int32)
    for whole in columns(rng, count):
        values = whole.slice(begin, end - begin)
        found = taken(values, at)
        found.validate(full=True)
        assert found.type == values.type
        assert found.equals(values.take(pa.array(at))), whole.type
        holes = np.where(np.array([rng.random() < 0.3 for _ in at], bool), -1, at).astype(np.int32)
        assert taken_or_null(values, holes).equals(values.take(pa.array(holes, mask=holes < 0)))


@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()])
@pytest.mark.parametrize("null", [False, True])
def test_texts_of_a_dictionary_are_spelt_out(index, null):
    column = (
        pa.array(["b", "a", None if null else "c", "b"]).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    )
    for values in (column, column.slice(1), column.slice(4)):
        assert spelt(values).equals(values.cast(pa.string()))
    assert spelt(pa.array(["a", None])).to_pylist() == ["a", None]


def test_a_dictionary_with_nulls_is_spelt_out():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    assert spelt(column).to_pylist() == ["a", None, "a"]


@pytest.mark.parametrize("seed", range(40))
def test_texts_that_repeat_are_those_of_arrow(seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(limits, "REPEATED_BYTES", rng.choice([0, 1 << 23]))
    many = rng.choice([2, 20, 300])
    words = pa.array([f"word {k}" for k in range(many)])
    lists = pa.array([[f"label {k}"] * (k % 3) for k in range(3)], pa.list_(pa.string()))
    events = rng.randint(1, 9)
    coded = [(v, np.array([rng.randrange(len(v)) for _ in range(events)], np.int64)) for v in (lists, words)]
    repeated = np.tile(rng.choices(range(events), k=rng.randint(1, 18)), rng.randint(1, 50)).astype(np.int32)
    for at in (repeated, repeated[: rng.randint(1, len(repeated))], np.append(repeated, rng.randrange(events))):
        for values, codes in coded:
            column = repeated_or_taken(values, codes, at.astype(np.int32))
            column.validate(full=True)
            assert column.equals(values.take(pa.array(codes[at])))
