"""Names of a package that are imported at their first use, and modules that are found under a second name."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any


def imported_later(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that has names of other modules; ``modules`` gives the module of each name."""

    def imported(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(import_module(modules[name]), name)
        # The package has the name from now on.
        setattr(import_module(package), name, found)
        return found

    return imported


class SecondNames:
    """Finds modules and what is below them under second names; it is the same module, and nothing of it exists twice.

    ``homes`` gives the module of each second name. The finder has to come before that of paths.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where a module is, if this is a second name."""
        parts = fullname.split(".", 2)
        home = self._homes.get(".".join(parts[:2]))
        spec = find_spec(".".join([home, *parts[2:]])) if home else None
        # To be of a class of importlib.abc would take longer to import.
        loader: Any = self
        return spec and ModuleSpec(fullname, loader, origin=spec.origin, loader_state=spec)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, under the name of its place."""
        return import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed: give it back its own specification, and second names to what is below it."""
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state
        for name in [name for name in [*sys.modules] if name.startswith(f"{module.__name__}.")]:
            # To import it again would set it in its package, in place of a function of its name.
            sys.modules.setdefault(spec.name + name.removeprefix(module.__name__), sys.modules[name])

    def get_code(self, fullname: str) -> CodeType | None:
        """The code, for ``python -m``."""
        spec: Any = self.find_spec(fullname)
        code: CodeType | None = spec.loader_state.loader.get_code(spec.loader_state.name)
        return code
