"""Automata as queries: on the engine, by the semantics and by their runs; in formulas; and as JSON."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow import automata as a
from cerflow.api.programs.program import query_as_text
from cerflow.base.errors import QueryError
from cerflow.base.events import Stream
from cerflow.language.condition import And, Not, Or
from cerflow.language.parser import parse_sremo
from cerflow.language.select import Select
from cerflow.language.sremo import Regular
from cerflow.logic.conditions.guards import StreamTest, TypeTest
from cerflow.theory.papers.model.conditions import not_satisfied, register_selection
from cerflow.theory.papers.translations.conversions import as_formula
from support.generators.sremo import conditions, strings
from support.register_automata import E1, FIGURE_4, condition
from support.runners import ENGINE_RUNNERS, bag, complex_events, examples, semantics

COLUMNS = pa.schema({"type": pa.string(), "v": pa.int64()})
STATES = (0, 1, "q", ("q", 1), frozenset((0, "q")))
LABELS = st.sampled_from([frozenset(), frozenset(("event",)), frozenset(("x",)), frozenset(("x", "y"))])


@st.composite
def guards(draw, registers):
    """Conditions of automata: those of expressions, with tests of types, and negations where unknown is false."""
    drawn = draw(conditions())
    if not registers and register_selection(drawn):
        drawn = condition(draw(st.sampled_from(["v = 1", "v < 1 OR v IS NULL", "TRUE"])))
    shape = draw(st.integers(0, 4))
    if shape == 1:
        return And(TypeTest(draw(st.sampled_from("AB"))), drawn)
    if shape == 2:
        return Or(not_satisfied(drawn), StreamTest("S"))
    return Not(drawn) if shape == 3 else drawn


@st.composite
def automata(draw):
    """Small automata of all models, with states of all kinds, ε-transitions and several start states."""
    model = draw(st.sampled_from(["CEA", "UCEA", "RMA", "SRT"]))
    state = st.sampled_from(STATES[: draw(st.integers(1, len(STATES)))])
    count = draw(st.integers(1, 6))
    starts, finals = draw(st.sets(state, min_size=1, max_size=2)), draw(st.sets(state, min_size=1, max_size=2))
    if model in ("CEA", "UCEA"):
        kind = a.ComplexEventAutomaton if model == "CEA" else a.UnaryComplexEventAutomaton
        made = [kind.transition.of(draw(state), draw(state), draw(guards(False)), draw(LABELS)) for _ in range(count)]
        return kind.of(made, starts=starts, finals=finals)
    registers = ("r", "s")
    made = []
    for _ in range(count):
        source, target = draw(state), draw(state)
        if draw(st.integers(0, 5)) == 5:
            made.append(a.SymbolicTransition(source=source, target=target))
            continue
        writes = frozenset(draw(st.sets(st.sampled_from(registers), max_size=1)))
        made.append(
            a.SymbolicTransition(
                source=source, target=target, condition=draw(guards(True)), output=draw(LABELS), writes=writes
            )
        )
    first = min(starts, key=str)
    whole = a.SymbolicRegisterTransducer.of(made, start=first, finals=finals, registers=registers)
    return whole if model == "SRT" else a.as_register_match_automaton(whole)


def as_text(parts):
    return "SELECT * WHERE AUTOMATON '" + json.dumps(parts).replace("'", "''") + "'"


def table_of(rows):
    return pa.Table.from_pylist(rows, COLUMNS)


@examples(100)
@given(automata(), strings(6))
def test_runs_on_the_engine(automaton, rows):
    query = cerflow.Query.from_automaton(automaton)
    table, stream = table_of(rows), Stream.from_dicts(rows)
    expected = a.reported_matches(automaton, stream)
    found = semantics(query, table)
    assert complex_events(found) == expected
    assert len(found) == len(expected)
    for name, runner in ENGINE_RUNNERS.items():
        assert bag(runner(query, table)) == bag(found), name


@examples(100)
@given(automata(), strings(6))
def test_detection_without_marks(automaton, rows):
    query = cerflow.Query.from_automaton(automaton, detect=True)
    table, stream = table_of(rows), Stream.from_dicts(rows)
    expected = [k for k in range(len(rows)) if any(a.accepts(automaton, stream[m : k + 1]) for m in range(k + 1))]
    assert [row["detected_at"] for row in semantics(query, table)] == expected
    for runner in ENGINE_RUNNERS.values():
        assert [row["detected_at"] for row in runner(query, table)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE # ; A AS z",
        "SELECT * WHERE A AS z ; #",
        "SELECT * WHERE (A AS z : #)",
        "SELECT * WHERE (# : B AS z) WITHIN 3 EVENTS",
        "SELECT * WHERE (#)+",
        "SELECT * WHERE (#) :+",
        "SELECT x WHERE (# OR A AS x) FILTER x.v >= 0 PARTITION BY v",
        "SELECT * WHERE # AND (A AS x ; B AS y)",
        "SELECT * WHERE (A AS z ; B) UNLESS #",
        "SELECT * WHERE START(#) LIMIT 2",
        "SELECT LAST * WHERE # WITHIN 4 EVENTS",
        "SELECT MAX * WHERE # WITHIN 4 EVENTS",
        "SELECT COUNT(*) AS n WHERE #",
    ],
)
@examples(30)
@given(automata(), strings(6))
def test_in_formulas(text, automaton, rows):
    query = cerflow.parse(text.replace("#", query_as_text(cerflow.Query.from_automaton(automaton)).split("WHERE ")[1]))
    table = table_of(rows)
    expected = bag(semantics(query, table))
    try:
        found = bag(query.match(table).to_pylist())
    except cerflow.UnsupportedQueryError:
        # The excluded part may have to remember too much.
        assert "UNLESS" in text
        return
    if query.tree.limit is None:
        assert found == expected
    else:
        assert found <= bag(semantics(cerflow.Query(replace(query.tree, limit=None)), table))


@examples(60)
@given(automata(), strings(6), st.sampled_from(["2 EVENTS", "3 EVENTS", "1 [n]"]))
def test_windows_and_keys(automaton, rows, within):
    """The window of a detection goes over what a run reads, that of a match over what it marks."""
    rows = [{**row, "n": k} for k, row in enumerate(rows)]
    table = pa.Table.from_pylist(rows, COLUMNS.append(pa.field("n", pa.int64())))
    size = int(within[0])
    for key in ((), "type", ["type"]):
        stream = [[k for k, row in enumerate(rows) if row["type"] == t] for t in "AB"] if key else [[*range(len(rows))]]
        query = cerflow.Query.from_automaton(automaton, detect=True, within=within, partition_by=key)
        expected = set()
        for places in stream:
            part = Stream.from_dicts([rows[k] for k in places])
            for n in range(len(places)):
                near = [m for m in range(n + 1) if (places[n] - places[m] if "[" in within else n - m) < size]
                if any(a.accepts(automaton, part[m : n + 1]) for m in near):
                    expected.add(places[n])
        assert {row["detected_at"] for row in semantics(query, table)} == expected
        assert {row["detected_at"] for row in query.match(table).to_pylist()} == expected
        whole = cerflow.Query.from_automaton(automaton, partition_by=key)
        assert bag(whole.match(table).to_pylist()) == bag(semantics(whole, table))
    query = cerflow.Query.from_automaton(automaton, within=within)
    whole = a.reported_matches(automaton, Stream.from_dicts(rows))
    short = {(n, m) for n, m in whole if not m or max(p for _, p in m) - min(p for _, p in m) < size}
    assert complex_events(query.match(table).to_pylist()) == short


def test_strategies_windows_and_their_errors():
    rows = [{"type": t} for t in "AAB"]
    for strategy, count in (("ALL", 3), ("MAX", 1), ("LAST", 1), ("STRICT", 2)):
        query = cerflow.Query.from_automaton(a.compile_cel("A+ ; B"), strategy=strategy)
        assert query.match(rows).count() == count, strategy
    with pytest.raises(ValueError, match=r"strategy must be one of ALL, .*, not 'FIRST'"):
        cerflow.Query.from_automaton(FIGURE_4, strategy="FIRST")
    with pytest.raises(cerflow.QuerySyntaxError):
        cerflow.Query.from_automaton(FIGURE_4, within="a while")


def test_ends_without_a_mark_are_told():
    silent = a.compile_sremo("[type = 'A'] MARK . [type = 'B']")
    assert [str(w).splitlines()[0] for w in cerflow.Query.from_automaton(silent).warnings()] == [
        "runs that end with an event they do not mark are not reported"
    ]
    for query in (cerflow.Query.from_automaton(silent, detect=True), cerflow.Query.from_automaton(a.compile_sremo(E1))):
        assert not [w for w in query.warnings() if "mark" in str(w)]


@examples(100)
@given(automata(), st.booleans())
def test_json_and_text(automaton, detect):
    assert a.from_json(automaton.to_json()) == automaton
    query = cerflow.Query.from_automaton(automaton, detect=detect)
    assert cerflow.parse(query_as_text(query)).tree == query.tree
    query.check()


def test_constructions_run():
    """Each construction gives, on the engine, what the automaton that it began with reports."""
    rows = [{"type": t, "id": i} for t, i in zip("BBSBSS", (1, 2, 1, 1, 2, 1))]
    table = pa.Table.from_pylist(rows)
    free = a.eliminate_epsilon(a.compile_sremo(E1))
    alike = [
        a.streaming(a.compile_sremo(E1)),
        a.streaming(free),
        a.as_register_match_automaton(a.streaming(free)),
        a.with_start_loop(free),
        FIGURE_4,
    ]
    found = [bag(cerflow.Query.from_automaton(each).match(table).to_pylist()) for each in alike]
    assert len(found[0]) == 4
    assert found == [found[0]] * len(alike)
    tree = a.unroll(free, 3).transducer
    detected = cerflow.Query.from_automaton(tree, detect=True).match(table).to_pylist()
    assert [row["detected_at"] for row in detected] == [2, 5]
    for deterministic in (a.staggered(tree, 3), a.determinize_windowed(free, 3), a.minimize(a.staggered(tree, 3))):
        again = cerflow.Query.from_automaton(deterministic, detect=True).match(table).to_pylist()
        assert again == detected
    strict = a.select_strict(a.as_complex_event_automaton(a.compile_cel("A AS x ; B AS y")))
    events = pa.table({"type": list("ABAAB")})
    assert complex_events(cerflow.Query.from_automaton(strict).match(events).to_pylist()) == a.reported_matches(
        strict, Stream.from_dicts(events.to_pylist())
    )


def test_matches_are_not_listed_to_be_counted():
    query = cerflow.Query.from_automaton(a.compile_cel("A+ ; B"))
    assert query.match(pa.table({"type": ["A"] * 60 + ["B"]})).count() == 2**60 - 1


def test_pickles_and_explanations():
    import pickle

    query = cerflow.Query.from_automaton(FIGURE_4)
    assert pickle.loads(pickle.dumps(query)).tree == query.tree
    assert "id = r0" in query.explain()
    assert "AUTOMATON" in query.to_svg("boxes")
    assert [step.notation() for step in as_formula(FIGURE_4).steps]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cerflow": "pattern"}, '"cerflow": "automaton" is missing'),
        ({"version": 2}, "version 2 of an automaton cannot be read here, only 1"),
        ({"model": "DFA"}, "model must be one of CEA, UCEA, RMA, SRT, not 'DFA'"),
        ({"ends": "often"}, "ends must be 'any' or 'marked'"),
        ({"begins": 0}, "begins must be 'first' or 'anywhere'"),
        ({"states": [True]}, "states: true is not a state"),
        ({"states": [{"tuple": [1], "set": []}]}, "is not a state"),
        ({"starts": [7]}, "the start or final state q7 is not among the states"),
        ({"registers": ["\0hidden"]}, 'registers: "\\u0000hidden" is not a name'),
        ({"transitions": {}}, "transitions: a list is expected"),
        ({"transitions": [3]}, r"transitions[0]: an object is expected"),
        ({"transitions": [{"from": 0, "to": 9, "if": "TRUE"}]}, "transitions[0]: q9 is not among the states"),
        ({"transitions": [{"from": 0, "to": 0, "labels": ["x"]}]}, 'transitions[0]: without "if" it reads no event'),
        ({"transitions": [{"from": 0, "to": 0, "if": "v >"}]}, "transitions[0].if: "),
        (
            {"transitions": [{"from": 0, "to": 0, "if": {"xor": []}}]},
            'transitions[0].if: {"xor": []} is not a condition',
        ),
        ({"transitions": [{"from": 0, "to": 0, "if": "TRUE", "writes": ["z"]}]}, "there is no register z"),
        ({"transitions": [{"from": 0, "to": 0, "if": "TRUE", "marks": True}]}, "transitions[0]: 'marks' is not known"),
        ({"transitions": [{"from": 0, "to": 0, "if": "TRUE", "selection": [["x"]]}]}, "a parameter and its register"),
    ],
)
def test_json_at_fault(change, message):
    parts = json.loads(a.eliminate_epsilon(FIGURE_4).renumbered().to_json()) | change
    with pytest.raises(QueryError) as raised:
        a.from_json(json.dumps(parts))
    assert message in str(raised.value)
    with pytest.raises(QueryError) as raised:
        cerflow.parse(as_text(parts))
    assert "line 1, column" in str(raised.value)


def test_an_srt_has_one_start_state():
    parts = json.loads(FIGURE_4.to_json()) | {"starts": ["qs", "q1"]}
    with pytest.raises(a.AutomatonError, match="an SRT has one start state, not 2"):
        a.from_json(json.dumps(parts))


def test_text_that_is_no_json():
    with pytest.raises(QueryError, match=r"the automaton is not JSON: .* at character 0"):
        cerflow.parse("SELECT * WHERE AUTOMATON 'q0 -> q1'")
    with pytest.raises(QueryError, match="nested too deeply"):
        a.from_json("[" * 100_000)
    unknown = json.loads(FIGURE_4.to_json())
    unknown["transitions"][0]["if"] = "v > other.v"
    text = f"SELECT * WHERE AUTOMATON '{json.dumps(unknown)}'".replace("'B'", "''B''").replace("'S'", "''S''")
    # It may be a field of the event.
    with pytest.raises(QueryError, match="line 1, column 16: unknown attribute 'other'"):
        cerflow.parse(text).match([{"type": "B", "v": 1}])


def test_the_word_is_still_a_name():
    found = cerflow.parse("SELECT * WHERE AUTOMATON AS automaton FILTER automaton.v > 1").match(
        [{"type": "AUTOMATON", "v": 2}]
    )
    assert found.count() == 1


@pytest.mark.parametrize("text", ["([TRUE] AS x)+", "[TRUE] AS x . ([TRUE] | [TRUE] AS x)*", "([TRUE] AS x | [TRUE])*"])
def test_expressions_that_go_on_behind_a_match_by_key(text):
    """After the event of a match, too, every event of its key counts, and no other."""
    query = cerflow.Query(Select(Regular(parse_sremo(text)), partition=(("v",),)))
    table = pa.table({"type": ["A"] * 5, "v": [0, 1, 0, 0, 1]})
    expected = bag(semantics(query, table))
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table)) == expected


def test_conditions_as_text():
    made = a.SymbolicTransition(source=0, target=1, condition="v > 1 AND id = r.id")
    assert made == a.SymbolicTransition(source=0, target=1, condition=condition("v > 1 AND id = r.id"))
    rma = a.MatchTransition(source=0, target=1, formula="x.id = y.id", parameters=("x", "y"), selection=("r", "~"))
    assert str(rma.condition) == str(condition("r.id = id"))
    for kind in (a.ComplexEventTransition, a.UnaryComplexEventTransition, a.SymbolicTransition):
        assert kind(source=0, target=1, condition="v > 1").condition == condition("v > 1")
        with pytest.raises(cerflow.QuerySyntaxError):
            kind(source=0, target=1, condition="v >")
        with pytest.raises(a.ConditionError, match="a condition is text or a tree, not int"):
            kind(source=0, target=1, condition=3)
