"""The types of NumPy arrays: what their elements are, and how many axes they have.

Kernels are compiled for just these (see `cerflow.engine.kernels.base.shared_arrays`), in C order.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray


class ArrayType(NamedTuple):
    """The type of an array at run time. NumPy's type hints do not tell: their arguments differ between its versions."""

    dtype: np.dtype[Any]
    axes: int


#: 64-bit integers in one axis: positions, times, measures, and words, which may hold floats by their bits.
Ints = Annotated[NDArray[np.int64], ArrayType(np.dtype(np.int64), 1)]
#: 32-bit integers in one axis: numbers of states, nodes, configurations, marks, labels and rows of a part.
Smalls = Annotated[NDArray[np.int32], ArrayType(np.dtype(np.int32), 1)]
#: 64-bit floats in one axis.
Floats = Annotated[NDArray[np.float64], ArrayType(np.dtype(np.float64), 1)]
#: Bytes in one axis: bits for each row.
Bytes = Annotated[NDArray[np.uint8], ArrayType(np.dtype(np.uint8), 1)]
#: Truth values in one axis, one for each row or event.
Mask = Annotated[NDArray[np.bool_], ArrayType(np.dtype(np.bool_), 1)]
#: The same with two axes, rows and columns.
IntRows = Annotated[NDArray[np.int64], ArrayType(np.dtype(np.int64), 2)]
SmallRows = Annotated[NDArray[np.int32], ArrayType(np.dtype(np.int32), 2)]


@cache
def array_types(group: type) -> dict[str, ArrayType]:
    """The types of the arrays of a named tuple, in its order, as its fields declare them."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(group, include_extras=True).items()}
