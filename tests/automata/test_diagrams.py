"""Pictures: complete, and well-formed whatever the names."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.diagrams import show_guard, show_labels, show_write, transducer_diagram
from cerflow.language.formula import As, EventType, Sequence
from cerflow.language.parser import parse_formula
from cerflow.look.pictures import diagram
from support.generators.queries import formulas
from support.runners import examples

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
DOT_LINE = re.compile(
    r"digraph transducer \{|\}|  rankdir=LR;|  (node|edge) \[[^\]]*\];|  label=Q; .*;"
    r"|  (q|begin)\d+ \[(shape=point, )?label=Q(, shape=doublecircle)?\];"
    r"|  begin\d+ -> q\d+;|  q\d+ -> q\d+ \[label=Q\];"
)
MERMAID_LINE = re.compile(
    r"flowchart LR|  q\d+\(\(Q\)\)|  q\d+\(\(\(Q\)\)\)|  begin\d+\[Q\] --> q\d+|  style \w+ fill:none,stroke:none"
    r"|  q\d+ -- Q --> q\d+|  note\d+\[Q\]"
)
#: Names that need every kind of escape.
ODD = As(Sequence(EventType('say "hi"\\'), EventType("a<b>&#;`|\n{}")), 'x\\"')


def to_dot(transducer):
    return diagram.to_dot(transducer_diagram(transducer))


def to_mermaid(transducer):
    return diagram.to_mermaid(transducer_diagram(transducer))


def check_dot(text):
    for line in text.splitlines():
        assert DOT_LINE.fullmatch(QUOTED.sub("Q", line)), line


def check_mermaid(text):
    for line in text.splitlines():
        assert MERMAID_LINE.fullmatch(re.sub(r'"[^"]*"', "Q", line)), line
        for quoted in re.findall(r'"([^"]*)"', line):
            # Only our own line breaks and entities are left.
            plain = re.sub(r"#\d+;", "", quoted.replace("<br/>", ""))
            assert not set(plain) & set("<>&#;`\\"), line


@examples(60)
@given(formulas())
def test_pictures_are_complete_and_well_formed(formula):
    transducer = compile_formula(formula)
    dot, mermaid = to_dot(transducer), to_mermaid(transducer)
    check_dot(dot)
    check_mermaid(mermaid)
    for text, edge in ((dot, r"^  q\d+ -> "), (mermaid, r"^  q\d+ -- ")):
        assert len(re.findall(edge, text, re.MULTILINE)) == len(transducer.transitions)
    assert dot.count("doublecircle") == len(transducer.final)


def test_odd_names_are_escaped():
    transducer = compile_formula(ODD)
    check_dot(to_dot(transducer))
    check_mermaid(to_mermaid(transducer))
    assert 'say \\"hi\\"' in to_dot(transducer)
    assert "say #34;hi#34;#92;" in to_mermaid(transducer)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it():
    subprocess.run(["dot", "-Tsvg"], input=to_dot(compile_formula(ODD)).encode(), check=True, capture_output=True)


def test_the_notation():
    text = "(SELL AS a ; (BUY AS b FILTER b.n = 1 OR b.n = 2)+ ; EVENT AS z) FILTER b.p < a.p AND z.p + b.p > a.p"
    transducer = compile_formula(parse_formula(text))
    registers = transducer.registers
    loop = next(t for t in transducer.transitions if t.skips)
    assert (show_guard(loop, registers), show_labels(loop.labels)) == ("TRUE", "∅")
    guards = {show_guard(t, registers) for t in transducer.transitions if t.labels == frozenset({"BUY", "b"})}
    assert len(guards) == 1
    assert re.fullmatch(r"type = BUY ∧ \(n = 1 OR n = 2\) ∧ p < r\d", guards.pop())
    writes = {show_write(w, registers) for t in transducer.transitions for w in t.writes}
    assert {re.sub(r"^r\d ", "", w) for w in writes} >= {":= p", ":= {p}", "∪= {p}"}
    assert any("p + each r" in show_guard(t, registers) for t in transducer.transitions)
    assert any("type()" in show_labels(t.labels) for t in transducer.transitions)
    hidden = compile_formula(parse_formula("A AS x ; B AS y"), keep=frozenset(("x",)), marks=True)
    assert {show_labels(t.labels) for t in hidden.transitions} == {"∅", "{x}", "{hidden()}"}
    assert '[label="TRUE | ∅"]' in to_dot(transducer)
    assert '-- "TRUE | ∅" -->' in to_mermaid(transducer)
    assert "WITHIN 3 EVENTS" in to_dot(compile_formula(parse_formula("A ; B WITHIN 3 EVENTS")))


def test_the_notation_of_accumulators():
    text = "(A+ AS x FILTER sum(x.v) < z.v AND count(x) > 1 AND min(length(x.s)) = 1 AND NOT increasing(x.v))+ ; C AS z"
    transducer = compile_formula(parse_formula(text))
    registers = transducer.registers
    meanings = {r.meaning for r in registers}
    assert meanings >= {"sum(x.v)", "count(x)", "min(x: length(s))", "increasing(x.v)"}
    writes = {re.sub(r"r\d", "r", show_write(w, registers)) for t in transducer.transitions for w in t.writes}
    assert writes >= {
        "r := (high(v), low(v), known(v))",
        "r := (r.0 + high(v), r.1 + low(v), CASE WHEN v IS NULL THEN r.2 ELSE 1 END)",
        "r := CASE WHEN r < 2 THEN r + 1 ELSE r END",
        "r := CASE WHEN r IS NULL OR satisfied(length(s) < r) THEN length(s) ELSE r END",
        "r max= CASE WHEN CASE WHEN v IS NULL THEN r.2 ELSE 1 END > 0 THEN integer(r.0 + high(v), r.1 + low(v)) END",
    }
    check_dot(to_dot(transducer))
    check_mermaid(to_mermaid(transducer))
