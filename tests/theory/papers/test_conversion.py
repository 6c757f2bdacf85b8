"""Between the papers' transducer and the engine's: the same runs there and back, and in the engine itself."""

import pyarrow as pa
import pytest
from hypothesis import assume, given

import cerflow
from cerflow.automata import (
    as_transducer,
    compile_cepl,
    compile_sremo,
    eliminate_epsilon,
    from_engine,
    matches,
    reported_matches,
    streaming,
    to_engine,
)
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches as engine_matches
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition, Write
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.recognizer import Recognizer
from cerflow.language.condition import (
    Attribute,
    Comparison,
)
from cerflow.language.formula import CountWindow, DurationWindow
from cerflow.language.parser import parse_formula, parse_query
from cerflow.logic.conditions.guards import Stored
from cerflow.theory.semantics.sremo import sremo_matches
from support.generators.sremo import strings
from support.golden import SIX
from support.register_automata import E1, TABLE_1, compiled, condition, supports, word
from support.runners import complex_events, examples

COLUMNS = pa.schema({"type": pa.string(), "v": pa.int64()})


def run_by_engine(transducer, rows):
    """What the engine itself finds with a transducer; the query it comes from only says what is reported."""
    table = pa.Table.from_pylist(rows, COLUMNS)
    plan = Plan(parse_query("SELECT * WHERE EVENT"), Schema(table.schema), transducer=transducer)
    recognizer = Recognizer(plan.select, plan.schema, plan=plan)
    return complex_events(recognizer.push(table).to_pylist())


@examples(150)
@given(compiled(3), strings(6))
def test_the_engine_has_the_same_runs(case, rows):
    _, t = case
    events = Stream.from_dicts(rows)
    converted = to_engine(t)
    found = engine_matches(converted, events)
    for n in range(len(events)):
        assert matches(t, events[: n + 1]) == {m for k, m in found if k == n}
    anywhere = engine_matches(to_engine(streaming(t)), events, reporting=True)
    assert anywhere == reported_matches(t, events)


@examples(40)
@given(compiled(2), strings(6))
def test_streams_in_the_engine_itself(case, rows):
    expression, t = case
    converted = to_engine(streaming(t))
    expected = sremo_matches(expression, Stream.from_dicts(rows))
    assert {(n, m) for n, m in engine_matches(converted, Stream.from_dicts(rows), reporting=True)} == expected
    assume(all(edge.labels for edge in converted.transitions if edge.target in converted.final))
    assert run_by_engine(converted, rows) == expected


@examples(80)
@given(compiled(2), strings(5))
def test_there_and_back(case, rows):
    _, t = case
    events = Stream.from_dicts(rows)
    try:
        back = from_engine(to_engine(t))
    except UnsupportedQueryError:
        # Some register may be empty where it is read.
        assume(False)
    assert back.is_epsilon_free
    if events:
        assert matches(back, events) == matches(t, events)


@pytest.mark.parametrize(
    "text",
    [
        "T AS x ; H AS y",
        "(T AS x ; H AS y) FILTER x.id = y.id",
        "((T AS x ; H AS y) FILTER x.id = y.id AND x.value < y.value) OR H AS z",
        "(T AS x)+ : H AS y",
    ],
)
def test_formulas_compiled_for_the_engine_become_automata_of_the_papers(text):
    events = Stream.from_dicts(SIX)
    engine = compile_formula(parse_formula(text))
    back = from_engine(engine)
    assert reported_matches(back, events) == engine_matches(engine, events)
    windowed = from_engine(compile_formula(parse_formula(text), window=CountWindow(3)))
    expected = engine_matches(compile_formula(parse_formula(text), window=CountWindow(3)), events)
    assert reported_matches(windowed, events) == expected
    assert len(expected) < len(engine_matches(engine, events))


def test_the_algorithms_of_003_in_the_engine():
    converted = to_engine(as_transducer(compile_cepl("(A AS x ; B AS y) FILTER x.v = y.v")))
    rows = [{"type": t, "v": v} for t, v in zip("AABB", (1, 2, 2, 1))]
    assert {(n, frozenset(p for _, p in m)) for n, m in run_by_engine(converted, rows)} == {
        (2, frozenset((1, 2))),
        (3, frozenset((0, 3))),
    }


def test_what_registers_hold():
    t = compile_sremo(
        "[TRUE] MARK INTO r, unread . [id > r.id AND position(EVENT) - position(r) = 1 AND r.id < 3] MARK"
    )
    converted = to_engine(t)
    (register,) = converted.registers
    assert (register.keeps, register.fields, register.meaning) == (Accumulation.VALUE, 2, "r")
    assert engine_matches(converted, word("ab", (1, 2)), reporting=True)
    assert not ambiguous(converted)


def test_atoms_on_empty_registers():
    either = "([TRUE] MARK INTO r | [TRUE] MARK)"
    t = compile_sremo(f"{either} . [NOT id = r.id] MARK")
    converted = to_engine(t)
    events = word("ab")
    assert supports(engine_matches(converted, events)) == {(1, frozenset((0, 1)))}
    assert engine_matches(converted, events) == {(1, m) for m in matches(t, events)}
    impossible = to_engine(compile_sremo("[TRUE] MARK . [id = r.id] MARK"))
    assert not impossible.transitions


def test_e1_in_the_engine():
    converted = to_engine(streaming(compile_sremo(E1)))
    assert supports(engine_matches(converted, TABLE_1)) == {(k, frozenset((b, k))) for k in (3, 4) for b in (0, 1)}
    assert len(converted.registers) == 1
    assert eliminate_epsilon(from_engine(converted)).registers == ("r0",)


VALUE = Attribute(None, "v")
FRESH = Write(0, (VALUE,), fresh=True)


def _two(write=FRESH, read=0, *, initial=frozenset((0,)), window=None):
    """``v`` of the first event may go into a register that the second event is compared with."""
    atom = Comparison(Operator.GT, VALUE, Stored(read, 0))
    return Transducer(
        3,
        initial,
        frozenset((2,)),
        (
            Transition(0, 1, labels=frozenset("x"), writes=(write,)),
            Transition(1, 2, atoms=(atom,), labels=frozenset("y")),
        ),
        (Register(Accumulation.VALUE, 1, "x.v"),) * 2,
        window,
    )


def test_registers_of_the_engine_by_name():
    back = from_engine(_two())
    assert [(t.condition, sorted(t.writes), sorted(t.output)) for t in back.transitions] == [
        (condition("TRUE"), ["r0"], ["x"]),
        (condition("v > r0.v"), [], ["y"]),
    ]
    # Several initial states get a new one before them.
    assert len(from_engine(_two(initial=frozenset((0, 2)))).states) == 4


@pytest.mark.parametrize(
    ("transducer", "reason"),
    [
        (_two(Write(0, (VALUE,), fresh=False)), "something other than one event"),
        (_two(Write(0, (Stored(0, 0),), fresh=True)), "something other than one event"),
        (_two(initial=frozenset((1,))), "may be empty"),
        (_two(window=DurationWindow(5)), "only windows of events"),
        (_two(read=1), "never written"),
        (compile_formula(parse_formula("EVENT")), "type of the event"),
        (compile_formula(parse_formula("((A ; B) WITHIN 3 EVENTS) ; C")), "a condition of the papers cannot contain"),
    ],
)
def test_what_only_the_engine_has(transducer, reason):
    with pytest.raises(UnsupportedQueryError, match=reason):
        from_engine(transducer)


def test_events_as_arguments():
    @cerflow.predicate(name="same_number_for_study")
    def same(x: dict, y: dict) -> bool:
        return x["id"] == y["id"]

    try:
        t = compile_sremo("[TRUE] MARK INTO r . [same_number_for_study(EVENT, r)] MARK")
        for ids, count in (((1, 1), 1), ((1, 2), 0)):
            events = word("ab", ids)
            assert len(matches(t, events)) == count
            assert len(engine_matches(to_engine(t), events, reporting=True)) == count
    finally:
        cerflow.unregister_predicate("same_number_for_study")
