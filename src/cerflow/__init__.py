"""cerflow recognises complex events in streams, with a formal meaning that does not depend on the engine.

>>> import cerflow
>>> query = cerflow.parse("SELECT * WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25")
>>> events = [{"type": "T", "value": 45}, {"type": "H", "value": 20}]
>>> query.match(events).count()
1
"""

from cerflow import automata, builder, rewritings
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.recognizer import Recognizer
from cerflow.engine.recognize.set_recognizer import SetRecognizer
from cerflow.equivalence import Verdict, contained, equivalent, satisfiable
from cerflow.errors import (
    BadRecordError,
    CerflowError,
    InputError,
    InUseError,
    OutputError,
    PerformanceWarning,
    PredicateError,
    QueryError,
    QuerySyntaxError,
    QueryWarning,
    SnapshotError,
    TooManyMatchesError,
    UnsupportedQueryError,
)
from cerflow.files.events import read_events
from cerflow.language.parser import parse_formula
from cerflow.language.sremo_parser import parse_sremo
from cerflow.predicates.decorator import predicate
from cerflow.predicates.registry import registered_predicates, unregister_predicate
from cerflow.programs.program import Program, parse_program
from cerflow.programs.recognizer import ProgramRecognizer
from cerflow.query import Query, parse
from cerflow.query_set import QuerySet
from cerflow.schema import Schema
from cerflow.stream_inputs import Input, Streams, streams

__all__ = [
    "BadRecordError",
    "CerflowError",
    "InUseError",
    "Input",
    "InputError",
    "Matches",
    "OutputError",
    "PerformanceWarning",
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
    "TooManyMatchesError",
    "UnsupportedQueryError",
    "Verdict",
    "automata",
    "builder",
    "contained",
    "equivalent",
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
    "unregister_predicate",
]


def __getattr__(name: str) -> str:
    # Only who asks waits for the metadata to be read.
    if name == "__version__":
        from importlib.metadata import version

        return version("cerflow")
    raise AttributeError(f"module 'cerflow' has no attribute '{name}'")
