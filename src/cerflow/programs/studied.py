"""A statement of a program on a short stream, with the events that its definitions give, to be looked at closely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import usable_in_order
from cerflow.errors import InputError, nearest
from cerflow.programs.merged_streams import ProgramPlan, statements_for
from cerflow.programs.recognizer import merged_events
from cerflow.query import Query
from cerflow.stream_inputs import EventRoles, schema_of
from cerflow.studying.samples import StudiedEvents
from cerflow.values.event_tables import to_table

__all__ = ["studied"]


def studied(
    definitions: Mapping[str, Query],
    query: Query,
    events: Any,
    of: str | None,
    *,
    sequence: str | None = None,
    **roles: Unpack[EventRoles],
) -> tuple[Query, StudiedEvents]:
    """A definition (``of``) or the last query of a program, and the events that it reads of a stream.

    Raises as `Program.match`, and `InputError` for a definition that is not there.
    """
    if of is not None and of not in definitions:
        near = nearest(of, definitions)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(definitions) or 'none'}"
        raise InputError(f"there is no definition '{of}'; {hint}")
    queries: dict[str | None, Query] = {}
    for name, one in definitions.items():
        if name == of:
            break
        queries[name] = one
    queries[of] = query if of is None else definitions[of]
    table = to_table(events)
    schema = schema_of(table.schema, **roles)
    plan = ProgramPlan.of(statements_for(queries, schema), schema)
    table, _ = usable_in_order(table, RecordChecker(plan.schema, "fail", in_order=False), sequence)
    last = plan.statements[-1]
    return last.query, StudiedEvents(merged_events(plan.statements, schema, table)[0], last.schema)
