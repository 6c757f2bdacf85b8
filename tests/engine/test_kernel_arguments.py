"""Kernels have no type hints: docstrings say what their arguments are, their own or those of modules and folders."""

import ast
import re
from pathlib import Path

import pytest

from cerflow.engine import kernels

FOLDER = Path(kernels.__file__).parent


def named_in(text):
    """The names between double backticks."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"``([^`]+)``", text or ""))))


def kernels_of(path):
    """The public kernels of a module: compiled functions, and those that others call by their address."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            names = [a.arg for a in node.args.args]
            compiled = {d.id for d in node.decorator_list if isinstance(d, ast.Name)} & {"kernel", "part", "inlined"}
            if compiled or names[:1] == ["address"]:
                yield node.name, names, ast.get_docstring(node)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_argument_is_described(path):
    shared = set[str]()
    for module in (FOLDER / "__init__.py", path.parent / "__init__.py", path):
        shared |= named_in(ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))))
    missing = {name: set(arguments) - named_in(own) - shared for name, arguments, own in kernels_of(path)}
    missing = {name: some for name, some in missing.items() if some}
    assert missing == {}


def test_there_are_kernels():
    assert sum(len(list(kernels_of(path))) for path in FOLDER.rglob("*.py")) > 50
