"""Explains a program: which statement reads which, and how each is evaluated."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cerflow.api.query import Query
from cerflow.base.errors import PictureError
from cerflow.base.schema import Schema
from cerflow.look.explaining.facts import ExplainFormat
from cerflow.look.pictures.diagram import Arrow, Diagram, Vertex
from cerflow.look.pictures.targets import PICTURE_FORMATS, picture

#: The last query, which has no name.
_QUERY = "the query"


def explain_program(
    queries: Mapping[str | None, Query], schemas: Mapping[str | None, Schema], format: ExplainFormat
) -> str:
    """The explanation in the formats of `Query.explain`; as a picture the graph of the statements and streams."""
    if format in PICTURE_FORMATS:
        return picture(program_diagram(queries), format, title="program")
    if format == "boxes":
        raise PictureError("a program is not drawn as boxes; its definitions and its query are, each separately")
    explained = {name: each.explain(format, schemas.get(name)) for name, each in queries.items()}
    if format == "json":
        statements = [
            {"definition": name, "reads": _reads(each), **json.loads(explained[name])} for name, each in queries.items()
        ]
        return json.dumps({"statements": statements}, indent=2, ensure_ascii=False)
    parts = ["statements"]
    for name, each in queries.items():
        parts.append(f"  {name or _QUERY} reads {', '.join(_reads(each))}")
    for name, text in explained.items():
        parts += ["", f"=== {_QUERY if name is None else f'definition {name}'} ===", "", text]
    return "\n".join(parts)


def _reads(query: Query) -> list[str]:
    return list(dict.fromkeys(query.tree.streams)) or ["the input"]


def program_diagram(queries: Mapping[str | None, Query]) -> Diagram:
    """The graph of the streams and of the statements that read them; the last query has a double frame."""
    inputs = {stream for each in queries.values() for stream in _reads(each)} - {name or "" for name in queries}
    names = [*sorted(inputs), *queries]
    return Diagram(
        "program",
        "n",
        [Vertex(name or _QUERY, ends=name is None, box=name in queries) for name in names],
        [Arrow(names.index(stream), names.index(name)) for name, each in queries.items() for stream in _reads(each)],
    )
