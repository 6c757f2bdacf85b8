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

from cerflow.errors import (
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
from cerflow.language.parser import parse_formula
from cerflow.language.sremo_parser import parse_sremo
from cerflow.later import imported_later
from cerflow.predicates.decorator import predicate
from cerflow.predicates.registry import registered_predicates, unregister_predicate
from cerflow.query import Query, parse
from cerflow.schema import Schema
from cerflow.stream_inputs import Input, Streams, streams

if TYPE_CHECKING:
    from cerflow import automata, builder, definitions, rewritings
    from cerflow.engine.matches.matches import Matches
    from cerflow.engine.recognize.recognizer import Recognizer
    from cerflow.engine.recognize.set_recognizer import SetRecognizer
    from cerflow.equivalence import Verdict, contained, difference, equivalent, satisfiable, universal
    from cerflow.files.reading import read_events
    from cerflow.programs.program import Program, match, parse_program
    from cerflow.programs.recognizer import ProgramRecognizer
    from cerflow.query_set import QuerySet

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


_imported = imported_later(
    __name__,
    {
        "Matches": "cerflow.engine.matches.matches",
        "Program": "cerflow.programs.program",
        "ProgramRecognizer": "cerflow.programs.recognizer",
        "QuerySet": "cerflow.query_set",
        "Recognizer": "cerflow.engine.recognize.recognizer",
        "SetRecognizer": "cerflow.engine.recognize.set_recognizer",
        "Verdict": "cerflow.equivalence",
        "contained": "cerflow.equivalence",
        "difference": "cerflow.equivalence",
        "equivalent": "cerflow.equivalence",
        "match": "cerflow.programs.program",
        "parse_program": "cerflow.programs.program",
        "read_events": "cerflow.files.reading",
        "satisfiable": "cerflow.equivalence",
        "universal": "cerflow.equivalence",
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cerflow")
    if name in ("automata", "builder", "definitions", "rewritings"):
        from importlib import import_module

        return import_module(f"cerflow.{name}")
    return _imported(name)


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the command ``%%cerflow``; ``%load_ext cerflow`` calls this (extra ``cerflow[notebooks]``)."""
    from cerflow.notebooks.magic import add_magic

    add_magic(shell)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
