"""How Numba compiles kernels: to the text of LLVM only, in few passes.

By default Numba optimises each function with all that it calls, and makes machine code of it, again for each function
above. Here a function is lowered to text, once. LLVM sees all functions of a kernel together, and optimises them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

from numba import types
from numba.core.codegen import CodeLibrary
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

__all__ = ["Pipeline", "TextLibrary"]

#: The passes of Numba that kernels need. The others inline closures, rewrite array expressions or annotate types.
_PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
)


class TextLibrary(CodeLibrary):
    """The texts of one function, and the libraries of the functions that it calls."""

    def __init__(self, codegen: Any, name: str) -> None:
        without_code: Any = _WithoutCode(codegen)
        super().__init__(without_code, name)
        self.texts: list[str] = []
        self._called: list[Any] = []

    def with_called(self) -> Iterator[Any]:
        """This library and all that it needs, each once."""
        # The library of reference counts is one that all need for Numba, and none here.
        seen, found = {rtsys.library, self}, [self]
        for library in found:
            yield library
            for called in library._called if isinstance(library, TextLibrary) else ():
                if called not in seen:
                    seen.add(called)
                    found.append(called)

    def add_linking_library(self, library: Any) -> None:
        """Note a library that is called."""
        self._called.append(library)

    def add_ir_module(self, ir_module: Any) -> None:
        """Keep the text of a module."""
        self.texts.append(str(ir_module))

    def get_llvm_str(self) -> str:
        """The texts, for people."""
        return "\n".join(self.texts)

    def get_asm_str(self) -> str:
        """Nothing, as there is no machine code."""
        return ""

    def finalize(self) -> None:
        """Do nothing, as machine code is made of whole kernels."""

    def get_function(self, name: str) -> Any:
        """Fail, as there are only texts."""
        raise NotImplementedError(name)

    def get_pointer_to_function(self, name: str) -> int:
        """0, as there is no machine code."""
        return 0


class _WithoutCode:
    """What makes code for Numba, but asked for no addresses."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, *_: Any) -> None:
        """Do nothing, as only functions with Python's objects have an environment."""


class _Remembering:
    """Numba's context of types, which looks through all overloads only once for the same types.

    Functions of the package get integers with 64 bits, so that they are not compiled again for other widths, or for
    each number that a caller writes out.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._known: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """The signature of a function for types."""
        if isinstance(function, types.Dispatcher):
            arguments = tuple(map(_plain, arguments))
        if keywords or not isinstance(function, types.Type):
            return self._context.resolve_function_type(function, arguments, keywords)
        key = function, tuple(arguments)
        if key not in self._known:
            self._known[key] = self._context.resolve_function_type(function, arguments, keywords)
        return self._known[key]


def _plain(kind: Any) -> Any:
    """The type that stands for a type of arguments."""
    kind = types.unliteral(kind)
    return types.int64 if kind in types.signed_domain else kind


#: Contexts that remember, by those of Numba.
_remembering = cache(_Remembering)


class _Flags(Flags):
    """Numba's options, which it compares and hashes, all of them, at each overload that it tries."""

    @cached_property
    def _all(self) -> dict[str, Any]:
        return dict(super().values())

    def values(self) -> dict[str, Any]:
        """All options."""
        return self._all

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(sorted(self._all)))


class Pipeline(CompilerBase):
    """The way from a function in Python to its text."""

    def __init__(self, *given: Any) -> None:
        typing, target, library, arguments, returned, flags, names = given
        library = library or TextLibrary(target.codegen(), "kernel")
        super().__init__(_remembering(typing), target, library, arguments, returned, _Flags(flags), names)

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        manager = PassManager("kernel")
        for each in _PASSES:
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]
