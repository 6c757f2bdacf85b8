"""The meanings of formulas on short streams, as the tests of rewritings compare them."""

from __future__ import annotations

from typing import Any

from cerflow.base.events import ComplexEvent, Stream, support
from cerflow.language.formula import Formula
from cerflow.language.parser import parse_formula
from cerflow.language.printer import show
from cerflow.theory.semantics.first_order import first_order_denotation
from cerflow.theory.semantics.formulas import Denotation


def complex_events(formula: Formula | None, stream: Stream) -> list[frozenset[ComplexEvent]]:
    """The complex events detected at each position; None is a formula that cannot match."""
    if formula is None:
        return [frozenset() for _ in stream]
    denotation = Denotation(formula, stream)
    return [denotation(0, n) for n in range(len(stream))]


def supports(formula: Formula | None, stream: Stream) -> list[frozenset[frozenset[int]]]:
    """The supports of the complex events detected at each position."""
    return [frozenset(map(support, found)) for found in complex_events(formula, stream)]


def first_order_matches(formula: Formula | None, stream: Stream) -> list[frozenset[frozenset[int]]]:
    """The matches detected at each position in the first-order reading."""
    if formula is None:
        return [frozenset() for _ in stream]
    return [first_order_denotation(formula, stream, n) for n in range(len(stream))]


def readable(formula: Formula) -> bool:
    """Whether a formula is read back from its text as it is."""
    return parse_formula(show(formula)) == formula


def stream(rows: Any) -> Stream:
    """A stream of rows without times."""
    return Stream.from_dicts(rows)
