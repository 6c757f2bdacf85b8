"""Examples of the papers that no other file has, and the page of the manual that names the test of each example."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from cerflow.automata import Stream
from cerflow.definitions import first_order_matches
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.rewritings import (
    bound_variables,
    defined_variables,
    is_bounded,
    is_locally_parametrized,
    is_safe,
    is_well_formed,
)
from cerflow.theory.papers.model.conditions import holds
from cerflow.theory.semantics.formulas import Denotation
from support.generators.first_order import is_unary
from support.golden import (
    CASES,
    INCREASING,
    LABELLED_CASES,
    PHI1,
    PHI1_PUSHED,
    PHI2,
    PHI3,
    PHI4,
    PHI5,
    PHI6,
    RISING,
    SIX,
    SREMO_CASES,
    UNSAFE,
    labelled,
)
from support.register_automata import TABLE_1, condition

ROOT = Path(__file__).parents[3]


# --- P1 --------------------------------------------------------------------------------------------------------------


def test_variables_of_the_example():
    text = "(T AS x ; (H AS y)+) FILTER z.id = 1"
    assert defined_variables(text) == {"x", "y"}
    assert defined_variables(text, outside_iterations=True) == {"x"}
    assert bound_variables(text) == {"x"}
    assert is_well_formed(text).reason == "no formula around the filter binds 'z'"


@pytest.mark.parametrize(
    ("text", "well_formed", "safe", "unary", "local"),
    [
        (PHI1, True, True, True, False),
        (PHI1_PUSHED, True, True, True, True),
        (PHI2, True, True, True, False),
        (PHI3, True, True, True, False),
        (PHI4, True, True, False, False),
        (PHI5, False, True, True, False),
        (PHI6, True, True, True, False),
        (UNSAFE, True, False, True, True),
        # The part of φ4 within +.
        ("T AS y FILTER y.id = x.id", False, True, False, True),
    ],
)
def test_properties_of_the_formulas(text, well_formed, safe, unary, local):
    assert bool(is_well_formed(text)) is well_formed
    assert bool(is_safe(text)) is safe
    assert is_unary(parse_formula(text)) is unary
    assert bool(is_locally_parametrized(text)) is local
    if text == PHI4:
        assert parse_formula("T AS y FILTER y.id = x.id") in list(walk(parse_formula(PHI4)))


# --- P2 --------------------------------------------------------------------------------------------------------------

COLD = "T FILTER T.value < 0"
RISES = "(H+ AS HS) FILTER increasing(HS.value)"
HUMID = "(H AS HH) FILTER HH.value >= 60"


def test_parts_of_the_plantation_in_their_intervals():
    events = Stream.from_dicts(RISING)

    def found(text, first, last):
        return {(last, c) for c in Denotation(parse_formula(text), events)(first, last)}

    assert found(COLD, 0, 3) == {labelled(3, T="3")}
    assert found(HUMID, 8, 9) == {labelled(9, H="9", HH="9")}
    assert found(RISES, 4, 7) == {labelled(7, H=hs, HS=hs) for hs in ("7", "47", "67", "467")}
    assert labelled(4, H="24", HS="24") in found(RISES, 1, 4)


def test_filters_of_the_plantation_distribute():
    events = Stream.from_dicts(RISING)
    whole = Denotation(parse_formula(INCREASING), events)
    parts = Denotation(parse_formula(f"({COLD}) ; ({RISES}) ; ({HUMID})"), events)
    for n in range(len(events)):
        assert whole(0, n) == parts(0, n)
    assert len(parts(0, 9)) == 26


# --- 003 and 004 -----------------------------------------------------------------------------------------------------


def test_formula_2_of_003():
    text = "((T AS x)+ ; (H AS y)) FILTER x.id = y.id"
    assert not is_well_formed(text)
    assert not is_bounded(text)
    assert (3, frozenset({0, 1, 3})) in first_order_matches(text, list(SIX))
    assert bound_variables("(T AS x)+") == frozenset()


def test_conditions_of_004():
    c1, _, c3, c4, _, c6 = TABLE_1
    same = condition("id = r.id")
    assert holds(same, c4, {"r": c1})
    assert holds(condition("id = r.id AND NOT id = q.id"), c4, {"r": c1, "q": c3})
    assert not holds(same, c6, {"r": c1})
    assert holds(condition("type = 'B'"), c1, {})
    # An atom on an empty register is false, and its negation is true (Definition 13).
    assert not holds(same, c4, {})
    inside = "CASE WHEN r.id > 1 THEN 1 ELSE 0 END = 0"
    assert not holds(condition(inside), c4, {})
    assert holds(condition(f"NOT {inside}"), c4, {})


# --- the page --------------------------------------------------------------------------------------------------------

ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "theory" / "examples.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "::" in line
]


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_example_names_a_test_that_exists():
    assert len(ROWS) > 60
    named = {case.name for case in (*CASES, *LABELLED_CASES, *SREMO_CASES)}
    for row in ROWS:
        item, where, result, test = row
        assert item, row
        assert where, row
        assert result, row
        found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[(.+)\])?`", test)
        assert found, row
        path, name, case = found.groups()
        assert name in functions(path), test
        assert case is None or case in named, test


@pytest.mark.parametrize("path", ["tests/theory/papers/test_golden.py", "tests/theory/papers/test_examples.py"])
def test_every_test_of_an_example_stands_on_the_page(path):
    named = {found for *_, test in ROWS for found in re.findall(rf"{path}::(\w+)", test)}
    own = {name for name in functions(path) if name.startswith("test_") and not name.startswith("test_every_")}
    about = ("test_equation", "test_example", "test_figure", "test_table")
    assert named >= {name for name in own if path.endswith("test_examples.py") or name.startswith(about)}
