"""Windows in whole numbers and floats: the first start inside is inside, and the value before it is not."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerflow.engine.evaluate.measures import floats_of, order_of_floats, outside
from support.runners import examples


def first_inside(key, size):
    floats = isinstance(key, float)
    found = outside(order_of_floats(np.array([key])) if floats else np.array([key]), size, floats=floats) + 1
    return (floats_of(found) if floats else found)[0].item()


@examples(200)
@given(st.integers(-(10**6), 10**6), st.fractions(Fraction(1, 10), 10**5))
def test_whole_numbers(key, size):
    first = first_inside(key, size)
    assert isinstance(first, int)
    assert key - first < size <= key - (first - 1)


def test_whole_numbers_end_somewhere():
    assert first_inside(-(2**63), Fraction(2**70)) <= -(2**63) + 2


@examples(200)
@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_floats(key, size):
    first = first_inside(key, Fraction(size))
    assert key - first < size <= key - math.nextafter(first, -math.inf)


def test_floats_that_are_infinite():
    # Infinity minus itself is NaN, hence outside.
    for key in (-math.inf, math.inf):
        found = order_of_floats(np.array([key]))
        assert outside(found, Fraction(1), floats=True) >= found
