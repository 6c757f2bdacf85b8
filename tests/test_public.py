"""What users see: the public names, their docstrings, and the order in which the rooms may use each other."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import cerflow
import cerflow.api.query_set
import cerflow.automata
import cerflow.builder
import cerflow.definitions
import cerflow.rewritings

SOURCE = Path(cerflow.__file__).parent
#: Rooms and modules from the bottom up; those of one group may use each other. The longest name that fits counts.
ORDER = (
    ("base.cache_folder", "base.errors", "base.limits"),
    ("base",),
    ("look.viewing",),
    ("language",),
    ("look.pictures",),
    ("language.predicates",),
    ("logic.analysis",),
    ("logic.conditions",),
    ("logic.rewriting",),
    ("automata",),
    ("theory.rewriting",),
    ("theory.deciding",),
    ("theory.from_automata",),
    ("theory.papers",),
    ("engine",),
    ("engine.slices",),
    ("engine.pushdown",),
    ("theory.semantics",),  # a second opinion on all above, of which it uses what is written down or registered alone
    ("look.explaining",),
    ("api", "look.studying"),
    ("api.programs",),
    ("files",),
    ("spark",),
    ("studio",),
    ("__main__", "cli", "look.notebooks"),  # the command generates examples, the demonstration runs the command
)
LEVELS = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
#: Doors behind which each room has a place of its own.
DOORS = {"logic", "look", "theory"}
#: Public modules, which stand beside the public names.
MODULES = {"automata", "builder", "definitions", "rewritings"}


def test_all_is_what_is_visible():
    visible = {name for name in dir(cerflow) if not name.startswith("_")}
    submodules = {name for name in visible if isinstance(getattr(cerflow, name), types.ModuleType)}
    assert list(cerflow.__all__) == sorted(cerflow.__all__)
    assert set(cerflow.__all__) == (visible - submodules) | MODULES


@pytest.mark.parametrize("module", [cerflow.automata, cerflow.builder, cerflow.definitions, cerflow.rewritings])
def test_public_modules_show_what_they_say(module):
    visible = {name for name in dir(module) if not name.startswith("_")}
    # A room that is public itself has its files beside its names; none may have the name of the other.
    files = {name for name in visible if isinstance(getattr(module, name), types.ModuleType)}
    assert {getattr(module, name).__name__ for name in files} == {f"{module.__name__}.{name}" for name in files}
    if hasattr(module, "__path__"):
        assert not {path.stem for path in Path(module.__file__).parent.iterdir()} & set(module.__all__)
    visible -= files
    assert list(module.__all__) == sorted(module.__all__)
    assert set(module.__all__) == visible


@pytest.mark.parametrize(
    "module", [cerflow, cerflow.automata, cerflow.builder, cerflow.definitions, cerflow.rewritings]
)
def test_public_names_have_docstrings(module):
    for name in module.__all__:
        value = getattr(module, name)
        # An instance of a class of ours need not have words of its own.
        if not (inspect.isfunction(value) or inspect.isclass(value) or inspect.ismodule(value)):
            continue
        assert value.__doc__, name
        if inspect.isclass(value):
            for member, method in vars(value).items():
                if not member.startswith("_") and (inspect.isfunction(method) or isinstance(method, property)):
                    assert inspect.getdoc(getattr(value, member)), f"{name}.{member}"


@pytest.mark.parametrize(
    "module",
    [
        cerflow,
        cerflow.automata,
        cerflow.builder,
        cerflow.definitions,
        cerflow.api.query,
        cerflow.api.query_set,
        cerflow.rewritings,
    ],
)
def test_examples_in_docstrings_work(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_tree(path)))


def _room(module: str) -> str:
    """The room of a module of cerflow, as the order names it."""
    parts = module.split(".")[1:]
    return next(room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in LEVELS)


def _is_module(name: str) -> bool:
    place = SOURCE.joinpath(*name.split(".")[1:])
    return (place / "__init__.py").is_file() or place.with_suffix(".py").is_file()


def _module(path: Path) -> str:
    return ".".join(["cerflow", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def _imports(path: Path, nodes: Sequence[ast.AST] = ()) -> set[str]:
    """The modules of cerflow that a file imports, wherever in the file that stands, or in some nodes of it."""
    found = set()
    for node in nodes or _nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if node.module == "cerflow" or _is_module(name) else node.module for name in names}
    return {name for name in found if name.split(".")[0] == "cerflow"}


#: They show what is public of the rooms above and below.
FACADES = {SOURCE / "__init__.py", SOURCE / "automata" / "__init__.py"}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path not in FACADES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_imports_upwards(path):
    own = _module(path)
    if own.removeprefix("cerflow.") in DOORS:
        assert _imports(path) == set()
        return
    for name in _imports(path):
        if name == "cerflow" or (name.split(".")[1] in cerflow.__all__ and name.split(".")[1] not in MODULES):
            # The package itself stands above all rooms but those that use it as a user does.
            assert LEVELS[_room(own)] == len(ORDER) - 1, f"{path} imports {name}"
        else:
            assert _is_module(name), f"{path} imports {name} by a second name"
            assert LEVELS[_room(name)] <= LEVELS[_room(own)], f"{path} imports {name}"


def test_theory_and_engine_do_without_each_other():
    for path in FILES:
        own, used = _module(path), {".".join(name.split(".")[:2]) for name in _imports(path)}
        if own.startswith(("cerflow.base", "cerflow.language", "cerflow.logic", "cerflow.automata", "cerflow.engine")):
            assert "cerflow.theory" not in used, path
        if own.startswith("cerflow.theory"):
            assert "cerflow.engine" not in used, path


def test_no_modules_import_each_other():
    """Not even within a room, when they are imported."""
    waiting = {_module(path): _imports(path, _tree(path).body) for path in FILES}
    while free := {name for name, used in waiting.items() if not used & waiting.keys()}:
        waiting = {name: used for name, used in waiting.items() if name not in free}
    assert waiting == {}


@pytest.mark.parametrize(
    "name",
    ["builder", "definitions", "errors", "examples.demo", "limits", "predicates.registry", "programs", "rewritings"],
)
def test_modules_are_the_same_under_second_names(name):
    code = f"""
import sys
import cerflow.{name}
from cerflow.{name} import __name__ as home
assert cerflow.{name} is sys.modules[home] is sys.modules["cerflow.{name}"] and home != "cerflow.{name}"
assert cerflow.{name}.__spec__.name == home
from cerflow import {name.split(".")[0]} as again
import cerflow.examples.taxis
assert callable(cerflow.examples.taxis), "the function, not the module that it comes from"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_semantics_is_a_second_opinion():
    users = {path for path in FILES if any(name.startswith("cerflow.theory.semantics") for name in _imports(path))}
    own = {path for path in FILES if (SOURCE / "theory" / "semantics") in path.parents}
    assert users - own == {SOURCE / "api" / "reference.py"}
    used = {name for path in own for name in _imports(path)}
    assert {_room(name) for name in used} <= {
        *("base", "base.errors", "language", "language.predicates", "logic.analysis", "theory.semantics")
    }
    assert "cerflow.base.schema" not in used


def test_type_checkers_find_the_modules_that_the_manual_imports():
    root = Path(__file__).parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "docs").rglob("*.ipynb")]
    named = {
        name for page in pages for name in re.findall(r"(?:from|import) (cerflow(?:\.\w+)+)", page.read_text("utf-8"))
    }
    assert named >= {"cerflow.automata", "cerflow.examples", "cerflow.rewritings"}
    for name in named:
        stub = SOURCE.parent / "cerflow-stubs" / f"{name.removeprefix('cerflow.')}.pyi"
        assert _is_module(name) or stub.is_file(), name


def test_no_class_has_a_twin():
    """One word for one thing: a class is known by its name alone, be it public or not."""
    homes: dict[str, list[Path]] = {}
    for path in FILES:
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


#: Rooms that follow the words of the papers or of the specification, and the commands of the command line.
OWN_WORDS = ("theory/papers", "theory/semantics", "cli")
#: Public functions that two modules offer under one name on purpose: for tables and DataFrames, and in the builder.
PUBLIC_TWINS = {"match", "predicate", "streams"}


def test_no_function_has_a_twin():
    """A public function of a module is known by its name alone, too."""
    homes: dict[str, set[Path]] = {}
    for path in FILES:
        if path.relative_to(SOURCE).as_posix().startswith(OWN_WORDS):
            continue
        for node in _tree(path).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in PUBLIC_TWINS} == {}


def test_every_room_has_its_place():
    assert {_room(_module(path)) for path in FILES if _module(path).removeprefix("cerflow.") not in DOORS} == set(
        LEVELS
    )
    assert len({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}) <= 14


def test_every_module_says_what_it_is_for():
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(_tree(path)), path


def test_limits_have_one_home():
    for path in SOURCE.rglob("*.py"):
        for node in _nodes(path):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = {name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)}
            assert not any(re.match(r"_?(MOST|MAX)_", name) for name in names), f"{path} defines {names}"


def test_limits_are_read_when_they_are_needed():
    """A default of a parameter, or a name imported from there, would keep the number that held at import."""
    for path in SOURCE.rglob("*.py"):
        for node in _nodes(path):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "cerflow.base.limits", path
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                assert not any("limits." in ast.unparse(default) for default in defaults if default), path


def test_the_engine_is_imported_when_it_is_needed():
    code = """
import sys, cerflow
assert not {"lark", "logging", "pyarrow.compute"} & set(sys.modules)
cerflow.parse("SELECT * WHERE A ; B")
print(*sys.modules, sep="\\n")
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cerflow.api.query" in loaded
    assert not {"numba", "llvmlite", "pandas", "pyspark", "cerflow.engine", "cerflow.automata"} & set(loaded)


QUERIES_WITHOUT_PANDAS = [
    "SELECT * WHERE SELL AS x ; BUY AS y FILTER x.price > y.price AND x.name = 'A' WITHIN 10 SECONDS",
    "SELECT x WHERE SELL AS x ; BUY+ AS y ; SELL AS z FILTER y.volume > 3 AND z.name LIKE 'A%' "
    "PARTITION BY [name] WITHIN 6 EVENTS",
    "SELECT COUNT(*) WHERE SELL ; BUY WITHIN 3 EVENTS",
    "SELECT x.price + 1 AS p, x.name AS n WHERE SELL AS x ; BUY AS y WITHIN 3 EVENTS",
    "SELECT MAX * WHERE EVENT AS x ; BUY AS y FILTER x.volume + y.volume > 12 WITHIN 3 EVENTS",
]


def test_events_in_arrow_are_matched_without_importing_pandas():
    """Many of Arrow's functions import it where it is installed, which takes longer than a first match."""
    code = f"""
import sys
import numpy as np
import pyarrow as pa
import cerflow
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts
cerflow.base.limits.EVENT_SLACK = 50
rng = np.random.default_rng(1)
types, names = (array_of_texts(rng.choice(["BUY", "SELL", *more], 300)) for more in ([], ["A"]))
prices = array_of_numbers(rng.random(300), rng.random(300) < 0.1)
volumes = array_of_numbers(rng.integers(0, 9, 300), rng.random(300) < 0.1)
times = array_of_numbers(np.arange(300) * 10**6).cast(pa.timestamp("us"))
columns = dict(type=types, name=names, price=prices, volume=volumes, time=times)
for events in (pa.table(columns), pa.table({{**columns, "type": types.dictionary_encode()}})):
    for text in {QUERIES_WITHOUT_PANDAS!r}:
        query = cerflow.parse(text)
        matches = query.match(events, time="time")
        assert matches.count() and matches.to_pylist() and matches.to_arrow().num_rows
        if "COUNT" not in text:
            assert matches.to_arrow(events="dictionary").num_rows == matches.to_arrow(flat=True).num_rows
        recognizer = query.recognizer(events.schema, time="time")
        parts = [recognizer.push(events.slice(at, 20)).to_pylist() for at in range(0, 300, 20)]
        assert sum(map(len, parts)) == matches.rows()
# Arrow 19 imports pandas for more of them.
unneeded = {{"numba", "llvmlite"}} if pa.__version__ < "20" else {{"pandas", "numba", "llvmlite"}}
assert not unneeded & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_matching_needs_neither_the_papers_nor_the_semantics():
    code = "import sys, cerflow.engine.recognize.finite_stream; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cerflow.engine.kernels.base.library" in loaded
    assert not {
        "numba",
        "llvmlite",
        "pyspark",
        "cerflow.theory.papers",
        "cerflow.theory.semantics",
        "cerflow.look.explaining",
        "cerflow.files",
    } & set(loaded)


@pytest.mark.parametrize("module", ["frames.tasks", "source.task", "streaming.processor"])
def test_tasks_of_spark_import_little(module):
    """Each process of Spark's Python imports what its tasks need, at the first job of a session."""
    pytest.importorskip("pyspark")
    code = f"import sys, cerflow.spark.{module}; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = "api.reference files look.explaining look.pictures.diagram look.studying look.viewing theory"
    preparing = "batch frames.events job placing.placement source.planned streaming.matching"
    unneeded = {f"cerflow.{room}" for room in rooms.split()} | {f"cerflow.spark.{name}" for name in preparing.split()}
    assert f"cerflow.spark.{module}" in loaded
    assert not {"numba", "llvmlite", "pandas", "pyarrow.dataset", "cerflow.engine.pushdown", *unneeded} & set(loaded)
