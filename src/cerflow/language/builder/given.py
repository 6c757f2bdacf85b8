"""Formulas and expressions of SREMO as people give them to functions: as text, tree, builder or query."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from cerflow.base.errors import ArgumentError, Located
from cerflow.language.builder.common import Expr
from cerflow.language.builder.formulas import FormulaExpr
from cerflow.language.builder.sremo import SremoExpr
from cerflow.language.formula import Formula
from cerflow.language.parser import parse_formula, read_sremo
from cerflow.language.select import Select
from cerflow.language.sremo import Regular, Sremo, names_told_apart

P = ParamSpec("P")
R = TypeVar("R")


class WrittenQuery(Protocol):
    """A query, of which the formula counts alone."""

    @property
    def written(self) -> Select:
        """The query as it was written."""
        ...


#: A formula as text, as a tree, in the notation of the builder, or a query, of which only its formula counts.
FormulaGiven = Formula | FormulaExpr | str | WrittenQuery


#: An expression of SREMO in the same forms.
SremoGiven = Sremo | SremoExpr | str | WrittenQuery


def formula_tree(given: FormulaGiven) -> Formula:
    """The tree of a formula; raises `QuerySyntaxError` for other texts, and `ArgumentError` for anything else."""
    tree = parse_formula(given) if isinstance(given, str) else _tree(given)
    if isinstance(tree, Formula):
        return tree
    raise _refused("a formula", given)


def sremo_tree(given: SremoGiven) -> Sremo:
    """The tree of an expression, in which the names of registers are distinguished from those of attributes.

    Raises `QuerySyntaxError` for texts that are not an expression, and `ArgumentError` for anything else.
    """
    tree = read_sremo(given) if isinstance(given, str) else _tree(given)
    if isinstance(tree, Regular):
        tree = tree.expression
    if isinstance(tree, Sremo):
        return names_told_apart(tree)
    raise _refused("an expression", given)


def _refused(what: str, given: object) -> ArgumentError:
    kind = type(given).__name__
    return ArgumentError(f"{what} is a text, a tree, made by cerflow.builder, or a query, not of type {kind}")


def _tree(given: object) -> object:
    """The tree of what is no text: that of the builder, or the formula of a query."""
    tree = given.tree if isinstance(given, Expr) else getattr(given, "written", given)
    return tree.formula if isinstance(tree, Select) else tree


def of_formula(function: Callable[Concatenate[Formula, P], R]) -> Callable[Concatenate[FormulaGiven, P], R]:
    """The same function for formulas in all their forms; its errors tell the place in a text."""

    @wraps(function)
    def taking_any(formula: FormulaGiven, /, *args: P.args, **kwargs: P.kwargs) -> R:
        text: Any = formula if isinstance(formula, str) else getattr(formula, "text", None)
        with Located(text if isinstance(text, str) else None):
            return function(formula_tree(formula), *args, **kwargs)

    return taking_any
