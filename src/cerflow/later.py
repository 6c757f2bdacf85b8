"""Names of a package that are imported at their first use, because the modules that they need take long to import."""

from collections.abc import Callable, Mapping
from importlib import import_module
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
