"""The types of NumPy arrays: what their elements are, and how many axes they have.

Kernels are compiled for just these (see `cerflow.engine.kernels.base.shared_arrays`), in C order.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Floats", "IntRows", "Ints", "Mask", "SmallRows", "Smalls"]

#: 64-bit integers in one axis: positions, times, measures, and words, which may hold floats by their bits.
Ints = Annotated[NDArray[np.int64], 1]
#: 32-bit integers in one axis: numbers of states, nodes, configurations, marks, labels and rows of a part.
Smalls = Annotated[NDArray[np.int32], 1]
#: 64-bit floats in one axis.
Floats = Annotated[NDArray[np.float64], 1]
#: Bytes in one axis: bits for each row.
Bytes = Annotated[NDArray[np.uint8], 1]
#: Truth values in one axis, one for each row or event.
Mask = Annotated[NDArray[np.bool_], 1]
#: The same with two axes, rows and columns.
IntRows = Annotated[NDArray[np.int64], 2]
SmallRows = Annotated[NDArray[np.int32], 2]
