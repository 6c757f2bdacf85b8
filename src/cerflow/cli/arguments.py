"""Checks of arguments that all commands share."""

from __future__ import annotations

from typing import NoReturn

import typer

from cerflow.errors import visible

__all__ = ["load", "one_query", "spark_settings", "usage"]


def load(predicates: list[str] | None) -> None:
    """Register the predicates of these files and modules."""
    if predicates:
        from cerflow.cli.commands.predicate_files import load_predicates

        load_predicates(predicates)


def spark_settings(conf: list[str] | None) -> list[tuple[str, str]]:
    """The settings KEY=VALUE."""
    settings = []
    for setting in conf or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            usage(f"'{setting}' is not of the form KEY=VALUE", "--conf")
        settings.append((key, value))
    return settings


def one_query(query: str | None, expression: str | None) -> None:
    """Refuse a command unless it names exactly one query."""
    if (query is None) == (expression is None):
        usage("give either a query file or a query behind -e", "QUERY")


def usage(message: str, parameter: str) -> NoReturn:
    """Refuse a command with a message; ``parameter`` is the option that is wrong."""
    raise typer.BadParameter(visible(message), param_hint=f"'{parameter}'")
