"""cerflow recognises complex events in streams, with a formal meaning that does not depend on the engine.

>>> import cerflow
>>> query = cerflow.parse("SELECT * WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25")
>>> events = [{"type": "T", "value": 45}, {"type": "H", "value": 20}]
>>> query.match(events).count()
1
"""

import sys
from typing import TYPE_CHECKING, Any

# Python imports this before ``__main__`` runs, and calls the first argument so only until then.
if sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] == "cerflow":
    from cerflow_command import heed_signals

    heed_signals()

from cerflow.api.query import Query, parse
from cerflow.api.stream_inputs import Input, Streams, streams
from cerflow.base import SecondNames, imported_later
from cerflow.base.errors import (
    ArgumentError,
    BadRecordError,
    CerflowError,
    InputError,
    InUseError,
    MemoryLimitError,
    OutputError,
    PerformanceWarning,
    PictureError,
    PredicateError,
    QueryError,
    QuerySyntaxError,
    QueryWarning,
    SnapshotError,
    TimeLimitError,
    TooManyMatchesError,
    UnsupportedQueryError,
)
from cerflow.base.schema import Schema
from cerflow.language.parser import parse_formula, parse_sremo
from cerflow.language.predicates.registry import predicate, registered_predicates, unregister_predicate

if TYPE_CHECKING:
    from cerflow import automata
    from cerflow.api import builder, definitions, rewritings
    from cerflow.api.equivalence import Verdict, contained, difference, equivalent, satisfiable, universal
    from cerflow.api.programs.program import Program, match, parse_program
    from cerflow.api.programs.recognizer import ProgramRecognizer
    from cerflow.api.query_set import QuerySet
    from cerflow.engine.matches.matches import Matches
    from cerflow.engine.recognize.recognizer import Recognizer, SetRecognizer
    from cerflow.files.reading import read_events

__all__ = [
    "ArgumentError",
    "BadRecordError",
    "CerflowError",
    "InUseError",
    "Input",
    "InputError",
    "Matches",
    "MemoryLimitError",
    "OutputError",
    "PerformanceWarning",
    "PictureError",
    "PredicateError",
    "Program",
    "ProgramRecognizer",
    "Query",
    "QueryError",
    "QuerySet",
    "QuerySyntaxError",
    "QueryWarning",
    "Recognizer",
    "Schema",
    "SetRecognizer",
    "SnapshotError",
    "Streams",
    "TimeLimitError",
    "TooManyMatchesError",
    "UnsupportedQueryError",
    "Verdict",
    "automata",
    "builder",
    "contained",
    "definitions",
    "difference",
    "equivalent",
    "match",
    "parse",
    "parse_formula",
    "parse_program",
    "parse_sremo",
    "predicate",
    "read_events",
    "registered_predicates",
    "rewritings",
    "satisfiable",
    "streams",
    "universal",
    "unregister_predicate",
]


#: Modules that users know, by their doors.
_DOORS = {
    "api": "builder definitions equivalence programs query query_set rewritings stream_inputs",
    "base": "errors limits schema",
    "cli": "examples",
    "language": "predicates",
    "look": "studying",
    "theory": "deciding papers semantics",
}
_MODULES = {f"cerflow.{name}": f"cerflow.{door}.{name}" for door, names in _DOORS.items() for name in names.split()}
sys.meta_path.insert(0, SecondNames(_MODULES))
_imported = imported_later(
    __name__,
    {
        "Matches": "cerflow.engine.matches.matches",
        "Program": "cerflow.api.programs.program",
        "ProgramRecognizer": "cerflow.api.programs.recognizer",
        "QuerySet": "cerflow.api.query_set",
        "Recognizer": "cerflow.engine.recognize.recognizer",
        "SetRecognizer": "cerflow.engine.recognize.recognizer",
        "Verdict": "cerflow.api.equivalence",
        "contained": "cerflow.api.equivalence",
        "difference": "cerflow.api.equivalence",
        "equivalent": "cerflow.api.equivalence",
        "match": "cerflow.api.programs.program",
        "parse_program": "cerflow.api.programs.program",
        "read_events": "cerflow.files.reading",
        "satisfiable": "cerflow.api.equivalence",
        "universal": "cerflow.api.equivalence",
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cerflow")
    if name == "automata" or f"cerflow.{name}" in _MODULES:
        from importlib import import_module

        return import_module(f"cerflow.{name}")
    return _imported(name)


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the command ``%%cerflow``; ``%load_ext cerflow`` calls this (extra ``cerflow[notebooks]``)."""
    from cerflow.look.notebooks import add_magic

    add_magic(shell)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
