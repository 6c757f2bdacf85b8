"""Example streams and queries, and the demonstration that ``make demo`` runs.

`stocks`, `sensors`, `smart_homes` and `taxis` make seeded streams as Arrow tables; `query_text` reads a query that
comes with the package.
"""

from __future__ import annotations

from importlib.resources import files

from cerflow.api.query import Language
from cerflow.cli.examples.readings import farm_readings, sensors, smart_homes
from cerflow.cli.examples.stocks import stocks
from cerflow.cli.examples.taxis import taxis

__all__ = ["farm_readings", "query_names", "query_text", "sensors", "smart_homes", "stocks", "taxis"]


def query_names(language: Language = "ceql") -> tuple[str, ...]:
    """The names of the queries in the package in a language, sorted."""
    names = (query.name for query in (files("cerflow.cli.examples") / "queries").iterdir())
    return tuple(sorted(name.removesuffix(f".{language}") for name in names if name.endswith(f".{language}")))


def query_text(name: str, language: Language = "ceql") -> str:
    """The text of one of the queries in `query_names`; raises FileNotFoundError for any other name."""
    return (files("cerflow.cli.examples") / "queries" / f"{name}.{language}").read_text(encoding="utf-8")
