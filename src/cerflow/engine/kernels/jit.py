"""How kernels are compiled.

They work on arrays that Python holds while they run and make none themselves, so reference counts are left out
(``_nrt=False``): with them every access to an array in a tuple costs two atomic operations, in all a hundred times
the work that is done for an event. Whatever every event passes through is inlined; the rest stays a call, because
inlining is what compilation time goes into.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["allocating", "inlined", "kernel"]

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

kernel = njit(**_OPTIONS)
inlined = njit(**_OPTIONS, inline="always")
#: For kernels that make objects of their own.
allocating = njit(cache=True, nogil=True)
