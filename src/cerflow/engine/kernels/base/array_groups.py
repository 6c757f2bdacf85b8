"""The arrays behind one address (see `cerflow.engine.kernels.base.shared_arrays`) as types of Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype, from_dtype

from cerflow.engine.kernels.base.shared_arrays import FIELDS, WORDS

_WORD = ir.IntType(64)


class ArrayGroup(types.Type):
    """One group of arrays, by the address of its words."""

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(name=f"cerflow.{group}")


@register_model(ArrayGroup)
class _ArrayGroupModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@infer_getattr
class _ArrayGroupAttributes(AttributeTemplate):
    key = ArrayGroup

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        found = FIELDS[kind.group].get(name)
        return None if found is None else types.Array(from_dtype(found[0]), found[1], "C")


@lower_getattr_generic(ArrayGroup)
def _array_of(context, builder, kind, words, name):
    """Build the array struct again; LLVM drops the unused parts."""
    fields = FIELDS[kind.group]
    dtype, axes = fields[name]
    first = WORDS * list(fields).index(name)

    def word(k):
        load = builder.load(builder.gep(words, [ir.Constant(_WORD, first + k)]))
        # Arrays are not replaced while kernels run.
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        return load

    array_type = types.Array(from_dtype(dtype), axes, "C")
    element = context.get_data_type(array_type.dtype)
    shape = [word(1 + k) for k in range(axes)]
    return array_value(context, builder, array_type, builder.inttoptr(word(0), element.as_pointer()), shape)


def array_value(context, builder, array_type, data, shape):
    """An array without gaps, of elements at ``data``."""
    size = context.get_constant(types.intp, as_dtype(array_type.dtype).itemsize)
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(array_type)(context, builder)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()
