"""Pictures of diagrams: complete, self-contained, nothing outside, whatever the names."""

import math
import random
import sys
from collections import Counter

import pytest
from hypothesis import given

import cerflow
from cerflow.automata import compile_cepl
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.diagrams import transducer_diagram
from cerflow.base import limits
from cerflow.language.formula import As, EventType, Sequence
from cerflow.look.pictures.diagram import Arrow, Diagram, Piece, Vertex, plain, with_words
from cerflow.look.pictures.diagram_svg import to_svg
from support.generators.queries import formulas
from support.pictures import extent, groups, read_svg, texts, titles
from support.runners import examples

pytest.importorskip("pygraphviz")
ODD = As(
    Sequence(EventType("</style><script>alert(1)</script>"), EventType("a\n\x00]]>&quot;\ud83d漢字")), "\"x' onload="
)


@examples(40)
@given(formulas())
def test_every_state_and_transition_is_drawn_once(formula):
    diagram = transducer_diagram(compile_formula(formula))
    root = read_svg(to_svg(diagram))
    diagram = with_words(diagram)
    assert titles(root, "cf-vertex") == [vertex.name for vertex in diagram.vertices]
    assert len(groups(root, "cf-end")) == sum(vertex.ends for vertex in diagram.vertices)
    assert len(groups(root, "cf-begin")) == sum(vertex.begins for vertex in diagram.vertices)
    drawn = titles(root, "cf-arrow")
    assert Counter(drawn) == Counter("\n".join(plain(line) for line in arrow.lines) for arrow in diagram.arrows)
    accepting = [arrow for arrow in diagram.arrows if diagram.vertices[arrow.target].ends]
    assert len(groups(root, "cf-accepts")) == sum(arrow.source != arrow.target for arrow in accepting)
    shown = texts(root)
    assert all(line in " ".join(shown) for line in diagram.caption if len(line) < 70)


def test_signs_of_automata_are_drawn_as_words():
    svg = cerflow.parse("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 SECONDS").to_svg()
    root = read_svg(svg)
    arrows = titles(root, "cf-arrow")
    assert {"any event | left out", "NOT type = B | left out", "whatever comes next | left out"} <= {*arrows}
    assert "type = A | {A, x}\n↓ r0 := where 5 SECONDS begin" in arrows
    assert "r0: where the deadline of 5 SECONDS begins" in texts(root)
    assert root[0].text == "SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 SECONDS"
    # It is told to who does not see it, too.
    assert root[1].text.startswith("begins at q0; from q0 to q0: any event | left out; from q0 to q1: type = A |")
    assert root[1].text.endswith("ends at q3; r0: where the deadline of 5 SECONDS begins")


def test_states_stand_in_reading_order():
    svg = cerflow.parse("SELECT * WHERE A ; B ; C+ ; D").to_svg()
    places = {}
    for group in groups(read_svg(svg), "cf-vertex"):
        (circle, *_) = (e for e in group if e.tag.endswith("circle"))
        places[group[0].text] = float(circle.get("cx"))
    assert [*sorted(places, key=places.get)] == sorted(places)


def test_arrows_meet_their_states():
    vertices = [Vertex("a", begins=True), Vertex("a long name of a state"), Vertex("box", ends=True, box=True)]
    arrows = [Arrow(s, t, ((Piece("x"),),)) for s in range(3) for t in range(3)]
    root = read_svg(to_svg(Diagram("test", "q", vertices, arrows)))
    shapes = {
        g[0].text: extent(next(e for e in g if e.tag.endswith(("circle", "path")))) for g in groups(root, "cf-vertex")
    }

    def near(points, name):
        """Whether one of the points lies at the edge of a state, and none within it."""
        xs, ys = zip(*shapes[name])
        away = [max(min(xs) - x, x - max(xs), min(ys) - y, y - max(ys)) for x, y in points]
        middle, size = ((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2), (max(xs) - min(xs)) / 2
        if len(name) == 1:  # it is round
            away = [math.dist(middle, point) - size for point in points]
        return -1 < min(away) < 2

    for arrow, group in zip(arrows, groups(root, "cf-arrow")):
        (way,) = (extent(e) for e in group if e.tag.endswith("path"))
        (head,) = (extent(e) for e in group if e.tag.endswith("polygon"))
        assert near(way[:1], vertices[arrow.source].name)
        assert near(head, vertices[arrow.target].name)


def test_odd_names_stay_names():
    svg = to_svg(transducer_diagram(compile_formula(ODD)), title="<script>'\"\x07")
    assert "<script" not in svg
    root = read_svg(svg)
    assert root[0].text == "<script>'\"\\x07"
    assert any("</style><script>alert(1)</script>" in title.replace("\n", "") for title in titles(root, "cf-arrow"))


def test_long_guards_are_folded():
    condition = " AND ".join(f"x.attribute_{k} > {k}" for k in range(30))
    root = read_svg(cerflow.parse(f"SELECT * WHERE A AS x FILTER {condition}").to_svg())
    (arrow,) = groups(root, "cf-accepts")
    assert "attribute_29 > 29" in arrow[0].text
    lines = texts(arrow)
    assert len(lines) == 5
    assert lines[3].endswith("…")
    assert lines[4] == "| {A, x}"
    assert all(len(line) <= 31 for line in lines)


def test_a_picture_near_the_limit_is_drawn_soon():
    states = 60
    vertices = [Vertex(f"q{k}", begins=k == 0) for k in range(states)]
    # Without bounds on the layout this takes minutes, and the test runs into its time limit.
    numbers = random.Random(1)
    ways = [(numbers.randrange(states), numbers.randrange(states)) for _ in range(limits.DRAWN_PARTS - states)]
    arrows = [Arrow(*way, ((Piece("type = A ∧ v > r0 | {A}"),),)) for way in ways]
    assert len(groups(read_svg(to_svg(Diagram("test", "q", vertices, arrows))), "cf-arrow")) == len(arrows)


def test_a_picture_that_nobody_could_read_is_refused():
    states = limits.DRAWN_PARTS // 2 + 1
    vertices = [Vertex(f"q{k}", begins=k == 0, ends=k == states - 1) for k in range(states)]
    arrows = [Arrow(k, k + 1) for k in range(states - 1)]
    diagram = Diagram("test", "q", vertices, arrows)
    with pytest.raises(cerflow.PictureError, match=f"{states} states and {states - 1} transitions is too large"):
        to_svg(diagram)
    read_svg(to_svg(Diagram("test", "q", vertices[:-1], arrows[:-1])))


def test_the_layout_engine_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    query = cerflow.parse("SELECT * WHERE A ; B")
    with pytest.raises(cerflow.PictureError, match=r"pip install 'cerflow\[pictures\]'"):
        query.to_svg()
    assert "no picture: pictures of automata need a layout engine" in query._repr_html_()


def test_themes():
    query = cerflow.parse("SELECT * WHERE A ; B")
    classes = {theme: read_svg(query.to_svg(theme=theme)).get("class") for theme in ("auto", "light", "dark")}
    assert classes == {"auto": "cf-picture", "light": "cf-picture cf-light", "dark": "cf-picture cf-dark"}
    assert "prefers-color-scheme:dark" in query.to_svg()
    with pytest.raises(ValueError, match="theme must be 'auto', 'light' or 'dark', not 'blue'"):
        query.to_svg(theme="blue")


def test_values_draw_themselves():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v")
    program = cerflow.parse_program("DEFINE d AS SELECT x.v AS v FROM s WHERE A AS x ; SELECT * FROM d, s WHERE d ; A")
    automaton = compile_cepl("(A AS x ; B AS y) FILTER x.v = y.v")
    for value in (query, program, automaton, compile_formula(query.tree.formula)):
        read_svg(value.to_svg())
        html, width = value._repr_html_(), int(read_svg(value.to_svg()).get("width"))
        assert value.to_svg() in html
        assert f"min-width:{0.75 * width:.0f}px" in html
    assert titles(read_svg(program.to_svg()), "cf-vertex") == ["s", "d", "the query"]
    assert len(groups(read_svg(automaton.to_svg()), "cf-vertex")) == len(automaton.states)
