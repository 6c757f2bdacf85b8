"""Compiles kernels for a processor: Numba writes LLVM's text of them, and LLVM makes an object of it.

Kernels raise nothing, so what Numba writes to report an error becomes a trap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from cerflow.engine.kernels.base.array_groups import array_value
from cerflow.engine.kernels.base.calling import Kernel
from cerflow.engine.kernels.base.parts import OPTIONS

#: The first function of Numba that is called where a kernel has failed.
_REPORTING = r'(?m)^declare (void @"?numba_gil_ensure"?\([^)]*\)).*$'
_TRAP = r"define internal \1 {\n call void @llvm.trap()\n unreachable\n}\ndeclare void @llvm.trap()"
#: What the library may lack: functions of C.
_OF_C = re.compile(r"llvm\..*|mem(set|cpy|move)|fmod|pow|floor|ceil|trunc|rint|nearbyint|round|exp|log|sqrt")


def module_of(kernels: Sequence[Kernel]) -> Any:
    """LLVM's module of some kernels, under their names, with all that they call."""
    module = llvm.parse_assembly("")
    for kernel in kernels:
        function = getattr(import_module(f"cerflow.engine.kernels.{kernel.where}"), kernel.name)
        signature = types.int64(*[types.int64] * len(kernel.arguments))
        if not kernel.inner:
            function, signature = _of_row(kernel, function), types.int64(types.CPointer(types.int64))
        compiled: Any = cfunc(signature, **OPTIONS)(function)
        module.link_in(llvm.parse_assembly(trapping(compiled.inspect_llvm())))
        module.get_function(compiled.native_name).name = kernel.name
    names = {kernel.name for kernel in kernels}
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in names:
            value.linkage = "internal"
    return module


def trapping(text: str) -> str:
    """LLVM's text in which reporting an error is a trap."""
    return re.sub(_REPORTING, _TRAP, text)


def object_of(module: Any, triple: str, processor: str) -> bytes:
    """The object of a module, which is optimised for a processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=processor, features="", opt=3, reloc="pic", codemodel="default")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization, tuning.slp_vectorization = True, False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    for value in (*module.functions, *module.global_variables):
        if value.is_declaration and not _OF_C.fullmatch(value.name):
            raise NotImplementedError(f"kernels need {value.name}")
    code: bytes = machine.emit_object(module)
    return code


def _of_row(kernel: Kernel, function: Any) -> Any:
    """A kernel as a function of a pointer to its row."""
    given = [types.Array(from_dtype(d), axes, "C") if axes else from_dtype(d) for d, axes in kernel.arguments]
    first, result = kernel.size - kernel.results, types.BaseTuple.from_types(given)

    def unpacked(_: Any, row: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            places = (builder.gep(arguments[0], [ir.Constant(word, k)]) for k in range(kernel.size))
            words, values = map(builder.load, places), []
            for kind, (_, axes) in zip(given, kernel.arguments):
                value = next(words)
                if axes:
                    data = builder.inttoptr(value, context.get_data_type(kind.dtype).as_pointer())
                    value = array_value(context, builder, kind, data, [next(words) for _ in range(axes)])
                elif kind is types.boolean:
                    value = builder.icmp_signed("!=", value, ir.Constant(word, 0))
                values.append(value)
            return context.make_tuple(builder, result, values)

        return result(row), generate

    read: Any = intrinsic(unpacked)

    def called(row: Any) -> Any:
        function(*read(row))
        return 0

    def called_for_one(row: Any) -> Any:
        return function(*read(row))

    def called_for_several(row: Any) -> Any:
        found = function(*read(row))
        for k in range(1, len(found)):
            row[first + k] = found[k]
        return found[0]

    return (called, called_for_one, called_for_several)[min(kernel.results, 2)]
