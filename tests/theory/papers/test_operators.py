"""The operators of CEL on automata, by brute force from their definitions (P2 §3 and §6.1), and on the engine."""

from functools import cache
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow import automata as a
from cerflow.base.events import Stream, support
from cerflow.theory.papers.model.conditions import holds
from support.generators.cea import by_definition, ceas, label, read, uceas
from support.generators.sremo import strings
from support.register_automata import FIGURE_4, compiled, concatenated, condition, edge, word
from support.runners import complex_events, examples

COLUMNS = pa.schema({"type": pa.string(), "v": pa.int64()})


class Meaning:
    """``⟦A⟧(S, i, j)`` of operands and operators, with positions of the whole stream."""

    def __init__(self, rows):
        self.rows = rows
        self.events = Stream.from_dicts(rows)

    def operand(self, automaton):
        @cache
        def between(i, j):
            part = Stream.from_dicts(self.rows[i : j + 1])
            return {frozenset((x, p + i) for x, p in c) for n, c in by_definition(automaton, part, holds) if n == j - i}

        return between

    def sequence(self, left, right):
        def between(i, j):
            return {one | other for k in range(i, j) for one in left(i, k) for other in right(k + 1, j)}

        return between

    def strict(self, left, right):
        def between(i, j):
            return {
                one | other
                for k in range(i, j)
                for one, other in product(left(i, k), right(k + 1, j))
                if one and other and max(support(one)) == k and min(support(other)) == k + 1
            }

        return between

    def iteration(self, body, together):
        @cache
        def between(i, j):
            return body(i, j) | together(body, between)(i, j)

        return between

    def whole(self, between):
        """``⟦φ⟧_n`` for all n."""
        return {(n, c) for n in range(len(self.events)) for c in between(0, n)}

    def check(self, automaton, between):
        expected = self.whole(between)
        assert a.reported_matches(automaton, self.events) == expected
        found = cerflow.Query.from_automaton(automaton).match(pa.Table.from_pylist(self.rows, COLUMNS))
        assert complex_events(found.to_pylist()) == expected


@examples(100)
@given(ceas(), ceas(), uceas(), uceas(), strings(5))
def test_sequences_and_iterations(one, other, third, fourth, rows):
    meaning = Meaning(rows)
    for left, right in ((one, other), (third, fourth)):
        begin, end = meaning.operand(left), meaning.operand(right)
        meaning.check(a.concatenate(left, right), meaning.sequence(begin, end))
        meaning.check(a.concatenate(left, right, strict=True), meaning.strict(begin, end))
        meaning.check(a.iterate(left), meaning.iteration(begin, meaning.sequence))
        meaning.check(a.iterate(left, strict=True), meaning.iteration(begin, meaning.strict))
        twice = a.iterate(a.concatenate(left, right, strict=True))
        meaning.check(twice, meaning.iteration(meaning.strict(begin, end), meaning.sequence))


def images(body, change):
    return lambda i, j: {made for c in body(i, j) if (made := change(c)) is not None}


@examples(100)
@given(uceas(), ceas(), strings(5), st.sampled_from(["x", "y", "z"]), st.sampled_from(["x", "y", "z"]))
def test_labels(automaton, cea, rows, one, other):
    meaning = Meaning(rows)
    body, marked = meaning.operand(automaton), meaning.operand(cea)
    values = [row["v"] for row in rows]

    def high(name):
        return lambda c: c if all(values[p] is not None and values[p] >= 1 for x, p in c if x == name) else None

    meaning.check(a.add_label(automaton, one), images(body, lambda c: c | {(one, p) for p in support(c)}))
    renamed = images(body, lambda c: frozenset((other if x == one else x, p) for x, p in c))
    meaning.check(a.rename_label(automaton, one, other), renamed)
    meaning.check(a.filter_label(automaton, one, "v >= 1"), images(body, high(one)))
    meaning.check(a.filter_label(cea, "event", condition("v >= 1")), images(marked, high("event")))
    kept = {one, other}
    meaning.check(a.project_labels(automaton, kept), images(body, lambda c: frozenset(x for x in c if x[0] in kept)))
    meaning.check(a.project_labels(automaton, ()), images(body, lambda c: frozenset()))


@examples(100)
@given(ceas(), uceas(), strings(5), st.integers(1, 4))
def test_starts_and_windows(cea, ucea, rows, window):
    meaning = Meaning(rows)
    for automaton in (cea, ucea):
        body = meaning.operand(automaton)

        def begun(i, j, body=body):
            return {c for c in body(i, j) if c and min(support(c)) == i}

        def near(i, j, body=body):
            return {c for c in body(i, j) if not c or max(support(c)) - min(support(c)) < window}

        meaning.check(a.anchor(automaton), begun)
        meaning.check(a.concatenate(automaton, a.anchor(automaton)), meaning.sequence(body, begun))
        meaning.check(a.restrict_to_window(automaton, window), near)


@examples(60)
@given(compiled(2), strings(5), st.booleans())
def test_operators_with_registers(case, rows, as_rma):
    _, t = case
    t = a.as_register_match_automaton(a.eliminate_epsilon(t)) if as_rma else a.eliminate_epsilon(t)
    events = Stream.from_dicts(rows)
    found = a.matches(t, events)
    assert a.matches(a.anchor(t), events) == {m for m in found if m and min(support(m)) == 0}
    assert a.matches(a.add_label(t, "z"), events) == {m | {("z", p) for p in support(m)} for m in found}
    assert a.matches(a.project_labels(t, ["event"]), events) == {
        frozenset(pair for pair in m if pair[0] == "event") for m in found
    }
    filtered = a.filter_label(t, "event", "v >= 1")
    assert type(filtered) is type(t)
    high = [(row["v"] or 0) >= 1 for row in rows]
    assert a.matches(filtered, events) == {m for m in found if all(high[p] for x, p in m if x == "event")}


@examples(100)
@given(compiled(2), strings(5), st.booleans())
def test_iteration_with_empty_registers(case, rows, as_rma):
    """004 Definition 30 as written, also where a repetition reads a register that it has not written (erratum 11.5)."""
    _, t = case
    t = a.as_register_match_automaton(t) if as_rma else t
    events = Stream.from_dicts(rows)
    found = {0: {frozenset()}}
    for end in range(1, len(events) + 1):
        found[end] = {
            concatenated(first, second, start)
            for start in range(end)
            for first, second in product(found[start], a.matches(t, events[start:end]))
        }
    star = a.iterate(t, empty_registers=True)
    assert type(star) is type(t)
    assert a.matches(star, events) == found[len(events)]
    on_engine = cerflow.Query.from_automaton(star).match(pa.Table.from_pylist(rows, COLUMNS)).to_pylist()
    assert complex_events(on_engine) == a.reported_matches(star, events)


def test_the_example_of_erratum_11_5():
    once = a.SymbolicRegisterTransducer.of([edge(0, 1, "NOT id = r.id", "•", "r")], start=0, finals=[1])
    assert a.matches(a.iterate(once), word("aa")) == frozenset()
    assert len(a.matches(a.iterate(once, empty_registers=True), word("aa"))) == 1


def test_the_middle_of_a_strict_iteration():
    """Erratum E6: a repetition of one event between others."""
    letter = a.compile_cel("A")
    found = {c for n, c in a.reported_matches(a.iterate(letter, strict=True), word("AAA")) if n == 2}
    assert frozenset({("A", 0), ("A", 1), ("A", 2)}) in found


def test_operators_of_formulas():
    """An automaton by operators has the complex events of the formula."""
    one, other = a.compile_cel("A AS x"), a.compile_cel("B AS y")
    for text, made in (
        ("A AS x ; B AS y", a.concatenate(one, other)),
        ("A AS x : B AS y", a.concatenate(one, other, strict=True)),
        ("(A AS x OR B AS y)+", a.iterate(a.union(one, other))),
        (
            "((A AS x ; B AS y) AS z) FILTER z.v > 1",
            a.filter_label(a.add_label(a.concatenate(one, other), "z"), "z", "v > 1"),
        ),
        ("START((A AS x ; B AS y)[x -> w])", a.anchor(a.rename_label(a.concatenate(one, other), "x", "w"))),
        (
            "PROJECT x, y ((A AS x ; B AS y) WITHIN 3 EVENTS)",
            a.project_labels(a.restrict_to_window(a.concatenate(one, other), 3), ["x", "y"]),
        ),
    ):
        assert a.difference(a.compile_cel(text), made).exists is False, text


def test_what_does_not_fit():
    cea = a.ComplexEventAutomaton.of([read(0, "•", 1, "A")], starts=[0], finals=[1])
    ucea = a.UnaryComplexEventAutomaton.of([label(0, "x", 1, "A")], starts=[0], finals=[1])
    for call in (
        lambda: a.add_label(cea, "x"),
        lambda: a.rename_label(cea, "x", "y"),
        lambda: a.project_labels(cea, ["x"]),
    ):
        with pytest.raises(a.TransitionKindError, match=r"takes a UCEA or .*, not a CEA; as_unary_automaton\(…\)"):
            call()
    for call in (lambda: a.concatenate(FIGURE_4, FIGURE_4, strict=True), lambda: a.iterate(FIGURE_4, strict=True)):
        with pytest.raises(a.TransitionKindError, match=r"strict=True\) takes a CEA or a UCEA, not an SRT; as_complex"):
            call()
    with pytest.raises(a.LabelSetError, match=r"write \['xy'\]"):
        a.project_labels(ucea, "xy")
    with pytest.raises(a.LabelSetError, match="a label is a name, not 3"):
        a.add_label(ucea, 3)
    with pytest.raises(a.MissingRegisterError, match="no register r"):
        a.filter_label(ucea, "x", "v > r.v")
    with pytest.raises(cerflow.QuerySyntaxError):
        a.filter_label(ucea, "x", "v >")
    with pytest.raises(a.EpsilonFreeError):
        a.anchor(a.compile_sremo("[TRUE] . [TRUE]"))
