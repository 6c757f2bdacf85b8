"""Explains a program: which statement reads which, and how each is evaluated."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cerflow.explaining.facts import ExplainFormat
from cerflow.query import Query
from cerflow.schema import Schema

__all__ = ["explain_program"]


def explain_program(
    definitions: Mapping[str, Query], query: Query, schemas: Mapping[str | None, Schema], format: ExplainFormat
) -> str:
    """The explanation in the formats of `Query.explain`; as ``"dot"`` the graph of the statements and streams."""
    queries: dict[str | None, Query] = dict([*definitions.items(), (None, query)])
    if format == "dot":
        return _graph(queries)
    explained = {name: each.explain(format, schemas.get(name)) for name, each in queries.items()}
    if format == "json":
        statements = [
            {"definition": name, "reads": _reads(each), **json.loads(explained[name])} for name, each in queries.items()
        ]
        return json.dumps({"statements": statements}, indent=2, ensure_ascii=False)
    parts = ["statements"]
    for name, each in queries.items():
        parts.append(f"  {name or 'the query'} reads {', '.join(_reads(each))}")
    for name, text in explained.items():
        parts += ["", f"=== {'the query' if name is None else f'definition {name}'} ===", "", text]
    return "\n".join(parts)


def _reads(query: Query) -> list[str]:
    return list(dict.fromkeys(query.tree.streams)) or ["the input"]


def _graph(queries: Mapping[str | None, Query]) -> str:
    lines = ["digraph program {", "  rankdir=LR;"]
    for name, query in queries.items():
        own = _quoted(name or "the query")
        lines.append(f"  {own} [shape=box{'' if name else ', peripheries=2'}];")
        lines += [f"  {_quoted(stream)} -> {own};" for stream in _reads(query)]
    return "\n".join([*lines, "}"])


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
