"""Kernels take numbers, arrays and tuples from Python, in machine code that is loaded without Numba."""

from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError

from cerflow.engine import machine_code
from cerflow.engine.kernels.base.jit import by_address, inlined, intrinsic, kernel, part, types
from cerflow.engine.machine_code import kept_code


@intrinsic
def twice(_, number):
    def generate(context, builder, signature, arguments):
        return builder.add(arguments[0], arguments[0])

    return types.int64(types.int64), generate


@inlined
def larger(a, b):
    return a if a > b else b


@part
def sum_of(array):
    found = 0.0
    for k in range(array.shape[0]):
        found += array[k]
    return found


class Pair(NamedTuple):
    """Arrays that are passed together."""

    numbers: np.ndarray
    flags: np.ndarray


@kernel
def mixed(table, floats, number, factor, flag, pair):
    table[1, 2] = twice(number) if flag else number
    pair.flags[0] = not pair.flags[0]
    floats[0] = sum_of(floats) * factor
    return larger(number, np.int64(pair.numbers[-1])), table.shape[0] > 1, table.shape[1]


@kernel
def total(array):
    found = 0
    for value in array:
        found += value
    return found


@kernel
def nothing(array):
    array[0] = 1


def add(a, b):
    return a + b


def test_what_kernels_take_and_return():
    table, floats = np.zeros((2, 3), np.int64), np.array([1.0, 2.5])
    pair = Pair(np.array([1, 2, 7], np.int32), np.array([True, False]))
    assert mixed(table, floats, np.int32(-3), 2.0, True, pair) == (7, True, 3)
    assert table.tolist() == [[0, 0, 0], [0, 0, -6]]
    assert floats.tolist() == [7.0, 2.5]
    assert pair.flags.tolist() == [False, False]
    array = np.zeros(2, np.int8)
    assert nothing(array) == 0
    assert array.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u8", "?", "q", "l"])
def test_arrays_of_each_type_have_their_own_function(dtype):
    array = np.array([1, 0, 3], dtype)
    assert total(array) == array.sum()
    assert total(array[:2]) == 1
    array.flags.writeable = False
    assert total(array) == array.sum()


def test_what_kernels_refuse():
    assert total(np.arange(4)) == 6
    unaligned = np.zeros(17, np.uint8)[1:].view(np.int64)
    for array in (
        np.arange(4)[::2],
        np.arange(4).astype(">i8"),
        np.arange(4).astype(np.dtype("M8[s]")),
        unaligned,
        None,
    ):
        with pytest.raises(TypeError, match=r"test_kernel_calls.total cannot use"):
            total(array)
    # With another number of axes or arguments it is another function, which cannot be made.
    for arguments in ((np.zeros((2, 2), np.int64),), (np.arange(2), 1)):
        with pytest.raises(NumbaError):
            total(*arguments)
    with pytest.raises(OverflowError):
        mixed(np.zeros((2, 3), np.int64), np.ones(1), 2**70, 1.0, True, Pair(np.ones(1, np.int32), np.ones(1, bool)))
    assert total(np.arange(4)) == 6


def test_a_damaged_file_is_made_anew(tmp_path, monkeypatch):
    address = by_address(add, 2)
    assert address == by_address(add, 2)
    monkeypatch.setattr(machine_code, "kernels_folder", lambda: tmp_path)
    made = []

    def code():
        made.append(1)
        return b"code"

    assert kept_code("some", code) == kept_code("some", code) == b"code"
    assert len(made) == 1
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert kept_code("some", code) == kept_code("some", code) == b"code"
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_full_disk_costs_compiling_again_and_nothing_else(tmp_path, monkeypatch, caplog):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine_code, "kernels_folder", lambda: tmp_path)
    monkeypatch.setattr(machine_code.os, "replace", full)
    assert kept_code("some", lambda: b"code") == b"code"
    assert "cannot be written: [Errno 28] No space left on device" in caplog.text
    assert not list(tmp_path.iterdir())


def test_threads_call_kernels_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    arrays = [np.full(1000 + k, k, dtype) for k in range(40) for dtype in ("i8", "i4")]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, arrays)) == [array.sum() for array in arrays]
