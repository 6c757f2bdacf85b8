"""Formulas as nested boxes: every part once, nothing outside, connections that say what may come between."""

from dataclasses import MISSING, fields

import pytest
from hypothesis import given

import cerflow
from cerflow.base import limits
from cerflow.language import formula as f
from cerflow.language import sremo
from cerflow.language.automaton import Model
from cerflow.language.condition import Constant
from cerflow.language.formula import Formula
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.sremo import Sremo
from cerflow.look.pictures.formula_svg import formula_svg
from support.generators.queries import formulas
from support.pictures import groups, read_svg, texts, titles
from support.runners import examples

LEAVES = (f.EventType, f.AnyEvent, f.NotEvent, sremo.Terminal, sremo.Epsilon, sremo.Empty)


def kinds(base):
    found = [base]
    for kind in found:
        found += kind.__subclasses__()
    return {kind for kind in found if "notation" not in vars(kind) and kind.__module__.startswith("cerflow.language")}


ABSTRACT = {
    *(Formula, f.SingleEvent, f.OfAnyType, f.Embedded, f.Combination, f.Join, f.Repeating, f.Exclusion),
    *(Sremo, sremo.Unary, sremo.Binary, sremo.Strategic),
}
#: A value for each field that has no default.
PARTS = {
    "name": "B", "label": "x", "labels": ("x",), "old": "x", "new": "y", "event": f.EventType("C"), "least": 2,
    "window": f.CountWindow(3), "strategy": f.Strategy.NEXT, "model": Model.CEA, "states": frozenset(),
    "starts": frozenset(), "finals": frozenset(), "registers": (), "steps": (), "anywhere": False,
    "ends_marked": False, "condition": Constant(True), "expression": sremo.ANY_EVENT, "most": None,
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted((kinds(Formula) | kinds(Sremo)) - ABSTRACT, key=lambda kind: kind.__name__))
def test_every_operator_has_a_picture(kind):
    operand = sremo.ANY_EVENT if issubclass(kind, Sremo) else f.EventType("A")
    operands = {"left": operand, "right": operand, "operand": operand, "parts": (operand, operand)}
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    drawn = read_svg(formula_svg(kind(**{name: (PARTS | operands)[name] for name in needed})))
    assert groups(drawn, "cf-leaf")


@examples(60)
@given(formulas())
def test_every_event_is_drawn_once(formula):
    root = read_svg(formula_svg(formula))
    leaves = [n for n in walk(formula) if isinstance(n, LEAVES)]
    inside = sum(isinstance(n, f.NotEvent) for n in leaves)  # NOT(R) holds an event type
    assert len(groups(root, "cf-leaf")) == len(leaves) - inside
    assert root[0].text == show(formula)


def connections(text):
    root = read_svg(cerflow.parse(f"SELECT * WHERE {text}").to_svg("boxes"))
    return [
        (line, "cf-skips" in path.get("class"))
        for group in groups(root, "cf-way")
        for line, path in zip(texts(group), (e for e in group if "cf-shaft" in e.get("class", "")))
    ]


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("A ; B", [(";", True)]),
        ("A : B", [(":", False)]),
        ("A ; B ; C ; D", [(";", True)] * 3),
        ("A ; (B ; C)", [(";", True)] * 2),
        ("A+", [("+", True)]),
        ("A:+", [(":+", False)]),
        ("A{2,3}", [("{2,3}", True)]),
        ("A:{2,}", [(":{2,}", False)]),
        ("(A : B){4}", [("{4}", True), (":", False)]),
    ],
)
def test_skipping_and_following_at_once_look_different(text, signs):
    assert connections(text) == signs


def test_the_parts_of_a_query_are_legible():
    query = cerflow.parse(
        "SELECT NEXT a, z FROM s WHERE ((A AS a FILTER a.v > 1) ; (B OR C) ; EVENT AS z ; NOT(D) ; F?) UNLESS X "
        "PARTITION BY [k] WITHIN 10 MINUTES CONSUME BY ANY LIMIT 3"
    )
    shown = texts(read_svg(query.to_svg("boxes")))
    for line in (
        "SELECT NEXT a, z", "FROM s", "A", "AS a", "FILTER a.v > 1", "OR", "EVENT", "AS z", "NOT D", "?  or nothing",
        "UNLESS", "X", "PARTITION BY k", "WITHIN 10 MINUTES", "CONSUME BY ANY", "LIMIT 3",
    ):  # fmt: skip
        assert shown.count(line) == 1, line


def test_expressions():
    query = cerflow.parse("[v > 1] AS x INTO r . ([TRUE]* | any([w = r.w] MARK, EPSILON))", language="sremo")
    root = read_svg(query.to_svg("boxes"))
    assert {"v > 1", "AS x", "INTO r", "|", "*", "any", "MARK", "EPSILON"} <= set(texts(root))
    assert any("any events may come between" in title for title in titles(root, "cf-way"))


def test_names_cannot_break_out_of_the_picture():
    root = read_svg(formula_svg(f.As(f.EventType("<script>alert(1)</script>"), "</text><g onload='x'>")))
    assert "<script>alert(1)</script>" in texts(root)


def test_deep_formulas_are_refused_and_wide_ones_drawn():
    def sequence(events):
        return cerflow.parse("SELECT * WHERE " + " ; ".join(f"E{k}" for k in range(events)))

    assert len(groups(read_svg(sequence(100).to_svg("boxes")), "cf-leaf")) == 100
    with pytest.raises(cerflow.PictureError, match=f"3999 parts of a formula is too large.*{limits.DRAWN_PARTS}"):
        sequence(2000).to_svg("boxes")
    nested = "(" * 90 + "A" + " ; B)+" * 90
    read_svg(cerflow.parse(f"SELECT * WHERE {nested}").to_svg("boxes"))
    with pytest.raises(ValueError, match="'automaton' or 'boxes', not 'tree'"):
        sequence(2).to_svg("tree")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A AS x : EVENT WITHIN 2 EVENTS", "A as x, and the very next event is any event, all within 2 EVENTS"),
        ("A OR (B+ AND C) PARTITION BY v", "either A or one or more of: B and C in any order, for each v"),
        ("A NOT FOLLOWED BY B FOR 5 EVENTS", "A, not followed for 5 EVENTS by B"),
        ("A{2,3} FILTER A.v > 1", "A{2,3}, where A.v > 1"),
    ],
)
def test_a_picture_tells_the_pattern_in_words(text, said):
    root = read_svg(cerflow.parse(f"SELECT * WHERE {text}").to_svg("boxes"))
    assert [e.text for e in root if e.tag.endswith("desc")] == [said]
