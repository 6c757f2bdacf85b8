"""Which rows of the collections beside a run others make needless."""

import pytest

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import Accumulation
from cerflow.base.operators import Operator
from cerflow.language.parser import parse_formula

LE, GE, EQ = Operator.LE, Operator.GE, Operator.EQ


def coverings(text):
    """What the collections of a formula's transducer remember, with the relations of their fields."""
    registers = compile_formula(parse_formula(text)).registers
    return {r.meaning.split(": ")[1]: r.covering for r in registers if r.keeps is Accumulation.SET}


@pytest.mark.parametrize("strategy", ["NEXT", "LAST"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.v < y.v", {"x.v": (LE,)}),
        ("x.v <= y.v + 1", {"x.v": (LE,)}),
        ("y.v < x.v", {"x.v": (GE,)}),
        ("x.v >= y.v", {"x.v": (GE,)}),
        ("NOT (x.v < y.v)", {"x.v": (GE,)}),
        ("x.v = y.v", {"x.v": (EQ,)}),
        ("x.v != y.v", {"x.v": (EQ,)}),
        ("x.v + y.v < 3", {"x.v": (EQ,)}),
        ("(x.v < y.v OR x.v < y.w)", {"x.v": (LE,)}),
        ("(x.v < y.v OR x.v > y.w)", {"x.v": (EQ,)}),
        ("x.v < y.v AND x.w = y.w", {"x.v; x.w": (LE, EQ)}),
        ("x.v < y.v AND x.w > C.v", {"x.v; x.w": (LE, GE), "x.w": (GE,)}),
    ],
)
def test_one_value_covers_another_if_no_comparison_prefers_the_other(strategy, condition, expected):
    assert coverings(f"{strategy}((A AS x ; B AS y ; C) FILTER {condition}) ; C") == expected


def test_bounds_of_iterations_and_beginnings_of_windows():
    assert coverings("LAST(((A AS x)+ ; B AS y ; C) FILTER x.v < y.v) ; C") == {"x.v": (LE,)}
    assert coverings("LAST((A ; B ; C) WITHIN 5 EVENTS) ; C") == {"start of window": (GE,)}
    assert coverings("D UNLESS ((A AS x ; B AS y) FILTER x.v < y.v)") == {"x.v": (LE,)}
