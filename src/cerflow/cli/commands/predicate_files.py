"""``--predicates``: Python files and modules that register predicates."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from cerflow.cli.output.reporting import warn
from cerflow.errors import InputError
from cerflow.predicates.registry import registered_predicates


def load_predicates(sources: Iterable[str]) -> None:
    """Run files (``*.py``, or anything with a path) and import modules (``package.module``), in the given order.

    Raises InputError if one cannot be found or fails, and warns if one registers no predicates.
    """
    for source in sources:
        before = registered_predicates()
        is_file = source.endswith(".py") or Path(source).name != source
        try:
            if is_file:
                _run(Path(source))
            else:
                importlib.import_module(source)
        except InputError:
            raise
        except ModuleNotFoundError as error:
            if is_file or error.name not in _above(source):
                raise InputError(_failed(source, error)) from error
            hint = f"; a file is given by its path, such as ./{source}.py"
            raise InputError(f"there is no module '{source}' with predicates{hint}") from error
        except (Exception, SystemExit) as error:
            raise InputError(_failed(source, error)) from error
        if registered_predicates() == before:
            warn(f"'{source}' registers no predicates")


def _run(path: Path) -> None:
    """Run a file as a module that cannot be imported.

    Its functions are then sent to the workers of Spark as a whole, not as the name of a module.
    """
    if not path.is_file():
        raise InputError(f"there is no file '{path}' with predicates")
    name = f"{path.stem} (predicates)"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"'{path}' is not a file of Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # While the file runs, dataclasses look the module up by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]


def _above(module: str) -> set[str]:
    """The names of a module and of the packages that it is in."""
    parts = module.split(".")
    return {".".join(parts[: k + 1]) for k in range(len(parts))}


def _failed(source: str, error: BaseException) -> str:
    what = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == Path(source).absolute()]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    place = "" if line is None else f", line {line}"
    return f"the predicates in '{source}' cannot be loaded{place}: {what}"
