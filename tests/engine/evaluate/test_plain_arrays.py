"""Arrays made and read without the functions of Arrow that import pandas."""

import numpy as np
import pyarrow as pa
import pytest

from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of, truths_of

HOLES = np.array([True, False, False, True, False, False, False, False, False, True])


@pytest.mark.parametrize("width", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float32, np.float64])
def test_numbers(width):
    values = np.arange(10).astype(width)
    for missing in (None, HOLES, np.zeros(10, bool)):
        array = array_of_numbers(values, missing)
        array.validate(full=True)
        assert array.equals(pa.array(values, mask=missing))
        for begin, end in [(0, 10), (3, 10), (1, 1), (9, 10), (10, 10)]:
            some = array.slice(begin, end - begin)
            expected = [7 if value is None else value for value in some.to_pylist()]
            assert numbers_of(some, 7).tolist() == expected
            assert numbers_of(some).dtype == width


def test_numbers_of_other_memory():
    strided = np.arange(20)[::2]
    assert array_of_numbers(strided).to_pylist() == strided.tolist()
    assert array_of_numbers(np.broadcast_to(np.array(3), (4,))).to_pylist() == [3] * 4
    assert numbers_of(pa.array([], pa.int64())).tolist() == []
    assert np.isnan(numbers_of(pa.array([None, 1.5]), np.nan)[0])


@pytest.mark.parametrize("texts", [[], [""], ["a", "Ärger", "", "x" * 100], [None], ["a", None, "b"] * 11])
def test_texts(texts):
    array = array_of_texts(texts)
    array.validate(full=True)
    assert array.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize("values", [[], [True], [False, True] * 9, [None, True, False] * 7, [None]])
def test_truths(values):
    array = pa.array(values, pa.bool_())
    for begin in range(len(values) + 1):
        some = array.slice(begin)
        assert truths_of(some).tolist() == [bool(value) for value in some.to_pylist()]
