"""How the arrays that kernels share are declared: each once, where its group is, see `cerflow.engine.layout`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cerflow.base.array_types import Bytes, array_types

#: Sizes by name: how many rows there is room for, how many there are, or how wide they are.
Sizes = Mapping[str, int]
G = TypeVar("G", bound=tuple[Any, ...])


class Ref(NamedTuple):
    """A column of numbers from ``least`` on, each less than the size ``to``, and if ``older`` than that of its row."""

    column: int
    to: str
    #: What is wrong otherwise.
    otherwise: str
    least: int = 0
    older: bool = False


class Array(NamedTuple):
    """An array with room for ``rows``, each as wide as ``width`` says; what is not used yet is ``fill``.

    If snapshots keep it, ``used`` is the counter of its rows, ``name`` its name there if that differs, and ``columns``
    are kept, or all; `restore_links` computes the others. A ``shared`` array is never copied, as rows in use never
    change. ``refs`` number rows or the like; in ``halves`` if they are columns of int32.
    """

    rows: int | str
    width: int | str = 1
    used: int = -1
    columns: tuple[int, ...] = ()
    name: str = ""
    fill: int = 0
    shared: bool = False
    halves: bool = False
    refs: tuple[Ref, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether snapshots keep it."""
        return self.used >= 0

    @property
    def at(self) -> Any:
        """The index of the kept columns, of which a single one is an array of one axis in snapshots."""
        if not self.columns:
            return ...
        return (slice(None), self.columns[0] if len(self.columns) == 1 else list(self.columns))

    def ref_columns(self, array: NDArray[Any]) -> Iterator[tuple[Ref, NDArray[Any]]]:
        """The columns of an array that refer to something."""
        rows = array.view(np.int32) if self.halves else array
        return ((ref, rows[:, ref.column] if rows.ndim == 2 else rows) for ref in self.refs)


@cache
def declarations(group: type) -> dict[str, Array]:
    """The declarations of the arrays of a named tuple, in its order."""
    return {name: hint.__metadata__[1] for name, hint in get_type_hints(group, include_extras=True).items()}


def empty_arrays(group: type[G], sizes: Sizes) -> G:
    """A named tuple of arrays with room as ``sizes`` say, which are parts of one `block_of` memory unless shared."""
    places, end = _places(group, *[sizes[size] if isinstance(size, str) else size for size in _sizes(group)])
    # Zeros that are never written take no memory.
    block, made = np.zeros(end, np.uint8), list[NDArray[Any]]()
    for dtype, shape, begin, fill in places:
        made.append(np.zeros(shape, dtype) if begin < 0 else np.ndarray(shape, dtype, block, begin))
        if fill:
            made[-1].fill(fill)
    return group(*made)


@cache
def _sizes(group: type) -> list[int | str]:
    """The number of rows and the width of each array of a group, one after the other."""
    return [size for array in declarations(group).values() for size in (array.rows, array.width)]


@lru_cache
def _places(group: type, *sizes: int) -> tuple[list[tuple[np.dtype[Any], tuple[int, ...], int, int]], int]:
    """For each array of a group its type, shape, place in a block (-1: it is shared), and fill; and the bytes of that.

    ``sizes`` are the numbers of rows and the widths.
    """
    places, end = [], 0
    for k, (array, (dtype, axes)) in enumerate(zip(declarations(group).values(), array_types(group).values())):
        shape = sizes[2 * k : 2 * k + axes]
        places.append((dtype, shape, -1 if array.shared else end, array.fill))
        # All begin at a multiple of eight bytes.
        end += 0 if array.shared else -(-prod(shape) * dtype.itemsize // 8) * 8
    return places, end


def block_of(array: NDArray[Any]) -> Bytes:
    """The bytes of all arrays that were made together with this one, but of no shared one."""
    assert array.base is not None
    return array.base
