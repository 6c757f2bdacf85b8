"""A program explained: which statement reads which, how each is evaluated, and one of them on a short stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextvars import Context
from threading import Lock
from typing import Any, Unpack

import pyarrow as pa

from cerflow.api.programs.merged_streams import ProgramPlan, statements_for
from cerflow.api.programs.recognizer import merged_events, merged_parts
from cerflow.api.query import Query, Statement
from cerflow.api.stream_inputs import EventRoles, columns_wanted, schema_of
from cerflow.base import limits
from cerflow.base.errors import InputError, PictureError, nearest
from cerflow.base.event_tables import to_table
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import valid_in_order
from cerflow.engine.stopping import look
from cerflow.logic.analysis.columns import attributes_in
from cerflow.look.explaining.facts import ExplainFormat
from cerflow.look.pictures.diagram import Diagram, reading_diagram
from cerflow.look.pictures.targets import PICTURE_FORMATS, picture
from cerflow.look.studying.samples import StudiedEvents

#: The statements by name; the last query has none.
Queries = Mapping[str | None, Query]
#: The last query, which has no name.
_QUERY = "the query"


def explain_program(queries: Queries, schemas: Mapping[str | None, Schema], format: ExplainFormat) -> str:
    """The explanation in the formats of `Query.explain`; as a picture the graph of the statements and streams."""
    if format in PICTURE_FORMATS:
        return picture(program_diagram(queries), format, title="program")
    if format == "boxes":
        raise PictureError("a program is not drawn as boxes; its definitions and its query are, each separately")
    explained = {name: each.explain(format, schemas.get(name)) for name, each in queries.items()}
    if format == "json":
        statements = [
            {"definition": name, "reads": each.reads, **json.loads(explained[name])} for name, each in queries.items()
        ]
        return json.dumps({"statements": statements}, indent=2, ensure_ascii=False)
    parts = ["statements"]
    for name, each in queries.items():
        parts.append(f"  {name or _QUERY} reads {', '.join(each.reads)}")
    for name, text in explained.items():
        parts += ["", f"=== {_QUERY if name is None else f'definition {name}'} ===", "", text]
    return "\n".join(parts)


def program_diagram(queries: Queries) -> Diagram:
    """The graph of the streams and of the statements that read them; the last query has a double frame."""
    reads = {name or _QUERY: each.reads for name, each in queries.items()}
    return reading_diagram("program", reads, reads.keys() - {_QUERY})


def studied(
    queries: Queries,
    events: Any,
    of: str | None,
    *,
    sequence: str | None = None,
    until: Any = None,
    **roles: Unpack[EventRoles],
) -> tuple[Query, StudiedEvents]:
    """A definition (``of``) or the last query of a program, and the events that it reads of a stream.

    Raises as `Program.match`, and `InputError` for a definition that is not there.
    """
    statements, schema, table = _prepared(queries, events, of, sequence, roles)
    clock = None if until is None else clock_time(until, schema)[0].as_py()
    read, by_clock = merged_events(statements, schema, table, clock)
    last = statements[-1]
    table = pa.concat_tables([read, by_clock]) if len(by_clock) else read
    return last.query, StudiedEvents(table, last.schema, until=until, clocked=len(by_clock))


class StudiedPart:
    """A definition (``of``) or the last query of a program, and of the events that it reads as many as are asked for.

    Raises as `studied`. ``query`` and ``schema`` are those of the statement; of the ``total`` of events of the input
    ``reached`` have been read.
    """

    def __init__(self, queries: Queries, events: Any, of: str | None, **roles: Unpack[EventRoles]) -> None:
        self._statements, schema, table = _prepared(queries, events, of, None, roles)
        self.query, self.schema = self._statements[-1].query, self._statements[-1].schema
        self._parts = merged_parts(self._statements, schema, table, limits.STUDIO_PUSHED_ROWS)
        self._read: list[pa.Table] = []
        self.reached, self.total = 0, len(table)
        self._lock = Lock()

    @property
    def reading(self) -> bool:
        """Whether another thread reads the input at the moment."""
        return self._lock.locked()

    @property
    def found(self) -> int:
        """How many events of the statement are known."""
        return sum(map(len, self._read))

    def first(self, count: int) -> pa.Table:
        """The first events that the statement reads: ``count`` or more, unless there are fewer.

        The check of the caller may end that (`cerflow.engine.stopping`); another call goes on from there.
        """
        with self._lock:
            while self.reached < self.total and self.found < count:
                look()
                # A push that is ended could not go on, so within it nothing is looked at.
                self._read.append(Context().run(next, self._parts))
                self.reached = min(self.reached + limits.STUDIO_PUSHED_ROWS, self.total)
            return pa.concat_tables(self._read or [self.schema.columns.empty_table()])


def _prepared(
    queries: Queries, events: Any, of: str | None, sequence: str | None, roles: EventRoles
) -> tuple[Sequence[Statement], Schema, pa.Table]:
    """The statements down to the one that is looked at, and the events of the input."""
    names = [*queries]
    if of not in names:
        definitions = [name for name in names if name is not None]
        near = nearest(str(of), definitions)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(definitions) or 'none'}"
        raise InputError(f"there is no definition '{of}'; {hint}")
    queries = {name: queries[name] for name in names[: names.index(of) + 1]}
    table = to_table(events, needed=columns_wanted((one.tree for one in queries.values()), sequence, roles))
    read = {name for one in queries.values() for name in attributes_in(one.tree)}
    schema = schema_of(table.schema, **roles).reading(read)
    plan = ProgramPlan.of(statements_for(queries, schema), schema)
    table = valid_in_order(table, RecordChecker(plan.schema, "fail", in_order=False), sequence).whole
    return plan.statements, schema, table
