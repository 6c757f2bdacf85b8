"""Programs: definitions whose matches are events of the queries below them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import InputError, QueryError, QuerySyntaxError
from support.programs import BURSTS, DIP
from support.runners import bag, examples


def second(k: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=k)


def test_five_bursts_in_an_hour() -> None:
    def failures(begin: float, machine: str, level: int) -> list[dict[str, Any]]:
        return [{"type": "FAIL", "t": second(begin + k), "machine": machine, "v": level} for k in range(3)]

    events = [e for k in range(5) for e in failures(600 * k, "m1", k)]
    events += [e for k in range(5) for e in failures(1000 * k, "m2", k)]  # spread over more than an hour
    events.append({"type": "FAIL", "t": second(300), "machine": "m1", "v": 99})
    program = cerflow.parse_program(BURSTS)
    found = program.match(events, time="t").to_pylist()
    assert found == program.match(events, time="t", runner="semantics").to_pylist()
    # Positions count bursts, of both machines: at 2 s for both, then m1 at 602, m2 at 1002, and so on.
    (match,) = found
    assert (match["machine"], match["level"]) == ("m1", 4)
    assert (match["start_time"], match["end_time"]) == (second(2), second(2402))
    assert (match["start"], match["end"], match["detected_at"]) == (0, 7, 7)


def test_events_of_definitions_stand_behind_what_detected_them() -> None:
    program = cerflow.parse_program("""
        DEFINE pair AS SELECT a.v AS from_, b.v AS to FROM log WHERE A AS a ; A AS b;
        DEFINE again AS SELECT p.to AS to FROM pair WHERE pair AS p;
        SELECT e FROM log, pair, again WHERE (log>A OR pair>EVENT OR again>EVENT) AS e
    """)
    found = program.match([{"type": "A", "v": v} for v in (1, 2, 3)]).to_pylist()
    shown = [(m["detected_at"], m["events"][0]["type"], m["events"][0]["from_"], m["events"][0]["to"]) for m in found]
    # Pairs in the order of their start; what a pair detects stands directly after it.
    assert shown == [
        (0, "A", None, None),
        (1, "A", None, None),
        (2, "pair", 1, 2),
        (3, "again", None, 2),
        (4, "A", None, None),
        (5, "pair", 1, 3),
        (6, "again", None, 3),
        (7, "pair", 2, 3),
        (8, "again", None, 3),
    ]


def test_what_an_event_detects_stands_behind_what_its_own_events_detect() -> None:
    program = cerflow.parse_program("""
        DEFINE one AS SELECT a.v AS v WHERE A AS a;
        DEFINE two AS SELECT first(e.v) AS v, first(e.type) AS of FROM log, one WHERE (log>A OR one>EVENT) AS e;
        DEFINE three AS SELECT a.v AS v WHERE A AS a;
        SELECT e FROM log, one, two, three WHERE (log>A OR one OR two OR three) AS e
    """)
    rows = [{"type": "A", "v": v} for v in (1, 2)]
    found = program.match(rows).to_pylist()
    shown = [(m["events"][0]["type"], m["events"][0]["of"], m["events"][0]["v"]) for m in found]
    behind = [("A", None), ("one", None), ("two", "one"), ("two", "A"), ("three", None)]
    assert shown == [(*event, v) for v in (1, 2) for event in behind]
    assert found == program.match(rows, runner="semantics").to_pylist()


def test_a_definition_reads_partition_window_limit_and_consumption_for_itself() -> None:
    text = "DEFINE d AS SELECT b.v AS v WHERE A AS a ; A AS b {0}; SELECT x.v AS v, x.k AS k FROM d WHERE d AS x"
    events = [{"type": "A", "v": v, "k": v % 2} for v in range(4)]

    def values(clauses: str) -> list[int]:
        key = "PARTITION BY k " if "PARTITION BY k" not in clauses else ""
        program = cerflow.parse_program(text.format(key + clauses))
        assert bag(program.match(events).to_pylist()) == bag(program.match(events, runner="semantics").to_pylist())
        return [match["v"] for match in program.match(events)]

    events += [{"type": "A", "v": v, "k": v % 2} for v in range(4, 6)]
    assert values("") == [2, 3, 4, 4, 5, 5]
    assert values("WITHIN 2 EVENTS") == [2, 3, 4, 5]
    assert values("LIMIT 1") == [2, 3, 4, 5]
    assert values("CONSUME BY PARTITION") == [2, 3]
    assert values("CONSUME BY ANY") == [2, 5]


DEFINITIONS = [
    ("d", "SELECT a.v AS v, b.k AS w FROM s1 WHERE A AS a ; B AS b WITHIN 4 EVENTS"),
    ("d", "SELECT a.v AS v, b.k AS w FROM s1, s2 WHERE A AS a ; s2>A+ ; B AS b PARTITION BY k"),
    ("d", "SELECT LAST b.v AS v FROM s2 WHERE (A OR B) AS a ; B AS b FILTER a.v <= b.v WITHIN 3 SECONDS"),
    ("d", "SELECT NEXT a.v AS v, b.v AS w WHERE A AS a ; A+ ; B AS b CONSUME BY ANY"),
    ("d", "SELECT a, a.v AS v FROM s1 WHERE A AS a"),
    ("d", "SELECT *, a.v AS v FROM s2, s1 WHERE A AS a : s1>B PARTITION BY k"),
]
SECONDS = [
    ("e", "SELECT x.v AS v, y.v AS w FROM d WHERE d AS x ; d AS y WITHIN 2 EVENTS"),
    ("e", "SELECT y.v AS v FROM d, s2 WHERE d AS x ; s2>A AS y FILTER y.v > 1"),
    ("e", "SELECT x.v AS v, position(x) AS w FROM s1, d WHERE s1>B : d AS x"),
    ("e", "SELECT z.v AS v WHERE A ; B AS z WITHIN 2 EVENTS"),
]
LASTS = [
    "SELECT * FROM e WHERE e+",
    "SELECT * FROM d, e WHERE d>EVENT AS x ; e>EVENT AS y WITHIN 5 EVENTS",
    "SELECT x.v AS v, count(z) AS n FROM s1, d, e WHERE d AS x : EVENT+ AS z ; A WITHIN 6 EVENTS",
    "SELECT MAX * FROM e, d, s2 WHERE (d OR e OR A)+ WITHIN 4 EVENTS",
    "SELECT COUNT(*) AS n FROM e, s1 WHERE e AS x ; B AS y FILTER y.v >= x.v",
    "SELECT x.v AS v WHERE A AS x : B",
]


EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from("AB"),
            "t": st.integers(0, 4).map(second),
            "v": st.none() | st.integers(0, 3),
            "k": st.sampled_from([None, 0, 1]),
            "s": st.sampled_from(["s1", "s2"]),
        }
    ),
    min_size=1,
    max_size=6,
)
TYPES = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.timestamp("us")),
        ("v", pa.int64()),
        ("k", pa.int64()),
        ("s", pa.string()),
    ]
)


@st.composite
def programs(draw: st.DrawFn) -> cerflow.Program:
    definitions = [draw(st.sampled_from(some)) for some in (DEFINITIONS, SECONDS)]
    text = "".join(f"DEFINE {name} AS {select};\n" for name, select in definitions)
    return cerflow.parse_program(text + draw(st.sampled_from(LASTS)))


#: Durations, repetitions and neighbours. No two matches have the same start, as the order of such is not defined.
DURATIONS = (
    "SELECT time(b) - time(a) AS gap, b.v AS v FROM s1 WHERE A AS a ; B AS b FILTER time(b) - time(a) <= 2 SECONDS",
    "SELECT max(a.t) - min(a.t) AS gap, time(b) + 1 SECOND AS at WHERE A:{1,2} AS a : B AS b PARTITION BY k",
    "SELECT last(a.t) - first(a.t) AS gap, first(a.v) AS v FROM s2, s1 WHERE (A OR B){2} AS a "
    "FILTER a[time() - prev(time()) < 2 SECONDS] WITHIN 3 SECONDS",
    "SELECT b.t - a.t AS gap, b.t - (b.t - a.t) / 2 AS at FROM s1 WHERE A AS a : B? : A AS b",
)
OVER_DURATIONS = (
    "SELECT x.gap + y.gap AS both, sum(z.gap) AS total FROM d WHERE d AS x ; d AS y ; d AS z",
    "SELECT x.gap * 2 AS double FROM d, s1 WHERE d AS x ; s1>B AS y FILTER time(y) - time(x) >= x.gap",
    "SELECT max(x.gap) AS most, x FROM d WHERE d{1,2} AS x FILTER x[gap > 0 SECONDS]",
    "SELECT COUNT(*) AS n FROM d, s2 WHERE d+ AS x ; A? ; d AS y FILTER y.gap <= 1 SECOND",
    "SELECT abs(y.gap - x.gap) / 1 SECOND AS change FROM d WHERE d AS x : d AS y WITHIN INTERVAL '3' SECOND",
)


@st.composite
def programs_of_durations(draw: st.DrawFn) -> cerflow.Program:
    return cerflow.parse_program(
        f"DEFINE d AS {draw(st.sampled_from(DURATIONS))};\n{draw(st.sampled_from(OVER_DURATIONS))}"
    )


@given(programs() | programs_of_durations(), EVENTS)
@examples(400)
def test_programs_mean_what_the_definitions_say(program: cerflow.Program, events: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(sorted(events, key=lambda event: event["t"]), TYPES)
    roles: dict[str, Any] = {"time": "t", "stream": "s"}
    expected = bag(program.match(table, runner="semantics", **roles).to_pylist())
    assert bag(program.match(table, **roles).to_pylist()) == expected
    recognizer = program.recognizer(table.schema, **roles)
    found = []
    for k, row in enumerate(table.to_pylist()):
        found += recognizer.push(row if k % 2 else table.slice(k, 1)).to_pylist()
        recognizer = program.restore(recognizer.snapshot(), table.schema, **roles)
    assert bag(found) == expected


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("DEFINE a AS SELECT * WHERE X;\nDEFINE a AS SELECT * WHERE Y;\nSELECT * FROM a WHERE a", "defined twice", 2),
        ("DEFINE a AS SELECT * FROM a, b WHERE a;\nSELECT * FROM a WHERE a", "reads itself", 1),
        (
            "DEFINE a AS SELECT * FROM b WHERE b;\nDEFINE b AS SELECT * FROM a WHERE a;\nSELECT * FROM a WHERE a",
            "'a' reads 'b', which is defined below it",
            1,
        ),
        (DIP + "SELECT * FROM dip WHERE dip AS d FILTER d.lo > 1", "have no attribute 'lo'", 2),
        (DIP + "SELECT * FROM dip, log WHERE (dip>EVENT AS d ; A AS x)\nFILTER d.v > 1", "have no attribute 'v'", 3),
        ("DEFINE n AS SELECT COUNT(*) AS n WHERE A;\nSELECT * FROM n WHERE n", "counts matches", 1),
        (DIP + "SELECT * FROM dip WHERE dip AS d FILTER e.low > 1", "e", 2),
    ],
)
def test_wrong_programs_are_refused_with_their_place(text: str, message: str, at: int) -> None:
    with pytest.raises(cerflow.CerflowError, match=f"line {at}, ") as refused:
        cerflow.parse_program(text)
    assert message in str(refused.value)


def test_the_nearest_attribute_is_named() -> None:
    with pytest.raises(QueryError, match="Did you mean low"):
        cerflow.parse_program(DIP + "SELECT * FROM dip WHERE dip AS d FILTER d.lov > 1")


def test_attributes_of_either_stream_may_be_read_where_a_label_means_both() -> None:
    program = cerflow.parse_program(DIP + "SELECT * FROM dip, log WHERE (A OR dip) AS d FILTER d.v >= 1")
    assert program.match([{"type": "A", "v": 1}, {"type": "B", "v": 2}]).count() == 1


def test_statements_that_cannot_be_read() -> None:
    for text, message in (
        (
            "DEFINE d SELECT * WHERE A",
            "AS is missing before 'SELECT'\n.*\n.*\na definition is written DEFINE d AS SELECT",
        ),
        ("DEFINE d AS SELECT * WHERE A ;", "ends too early, expected DEFINE or SELECT"),
        ("SELECT * WHERE A ; SELECT * WHERE B", "only the last statement is a query"),
    ):
        with pytest.raises(QuerySyntaxError, match=message):
            cerflow.parse_program(text)
    with pytest.raises(QuerySyntaxError, match="AS is missing before 'amount'"):
        cerflow.parse("DEFINE large amount > 5 SELECT * WHERE large")
    with pytest.raises(QuerySyntaxError, match="parse_program reads definitions"):
        cerflow.parse(DIP + "SELECT * FROM dip WHERE dip")


def test_a_program_reads_as_it_is_shown() -> None:
    program = cerflow.parse_program(BURSTS)
    assert cerflow.parse_program(repr(program).removeprefix("<Program ").removesuffix(">")).tree == program.tree
    # DEFINE is not a reserved word, and a semicolon is an operator where no statement follows.
    inner = cerflow.parse_program(
        "DEFINE define AS SELECT * WHERE DEFINE ; A; SELECT * FROM define WHERE define ; define;"
    )
    assert len(inner.definitions) == 1
    assert cerflow.parse_program("SELECT * WHERE A ; B").match([{"type": "A"}, {"type": "B"}]).count() == 1


def test_programs_written_in_python() -> None:
    from cerflow.builder import event, label, select, statements

    a, b, d = label("a"), label("b"), label("d")
    dip = select((event("A").as_(a) >> event("B").as_(b)), a.v.as_("low"), b.v.as_("high"), streams=["log"])
    last = select(event("dip").as_(d).filter(d.low > 1), streams=["dip"])
    tree = statements(last, {"dip": dip})
    assert tree == cerflow.parse_program(DIP + "SELECT * FROM dip WHERE dip AS d FILTER d.low > 1").tree
    assert cerflow.Program(tree).match([{"type": "A", "v": 2}, {"type": "B", "v": 1}]).count() == 1
    (warning,) = cerflow.Program(statements(dip, {"dip": dip})).warnings()
    assert "nothing reads the definition 'dip'" in str(warning)
    with pytest.raises(QueryError, match="have no attribute 'v'"):
        cerflow.Program(statements(select(event("dip").as_(d).filter(d.v > 1), streams=["dip"]), {"dip": dip}))


def test_unused_definitions_are_a_warning() -> None:
    program = cerflow.parse_program(DIP + "SELECT * FROM dips WHERE A")
    (warning,) = program.warnings()
    assert "nothing reads the definition 'dip'; did you mean FROM dips?" in str(warning)
    assert "line 1, column 1" in str(warning)
    assert not cerflow.parse_program(DIP + "SELECT * FROM dip WHERE dip").warnings()


def test_streams_that_do_not_fit_the_input() -> None:
    rows = [{"type": "A", "v": 1, "s": "log"}]
    with pytest.raises(QueryError, match="no stream 'dipp'"):
        cerflow.parse_program(DIP + "SELECT * FROM dipp, dip WHERE dip").match(rows, stream="s")
    with pytest.raises(InputError, match="log and trades"):
        cerflow.parse_program(DIP + "SELECT * FROM dip, log, trades WHERE dip").match(rows)
    with pytest.raises(QueryError, match="'v' is the column with the time"):
        cerflow.parse_program("DEFINE d AS SELECT a.v AS v WHERE A AS a; SELECT * FROM d WHERE d").match(rows, time="v")
    with pytest.raises(InputError, match="'k' is string in 'the input' and int64 in 'd'"):
        cerflow.parse_program("DEFINE d AS SELECT a.v AS k WHERE A AS a; SELECT * FROM d, x WHERE d").match(
            [{"type": "A", "v": 1, "k": "one"}]
        )


@pytest.mark.parametrize("last", ["SELECT x.v AS v FROM d WHERE d AS x", "SELECT * FROM d, B WHERE B ; d"])
def test_streams_that_are_told_apart_by_type(last: str) -> None:
    program = cerflow.parse_program(f"DEFINE d AS SELECT y.v AS v FROM A WHERE A AS x : A AS y; {last}")
    rows = [{"type": of, "v": k} for k, of in enumerate("ABAA")]
    found = program.match(rows, stream="type").to_pylist()
    assert len(found) == 2
    assert bag(found) == bag(program.match(rows, stream="type", runner="semantics").to_pylist())


def test_keys_that_a_definition_does_not_have_are_refused() -> None:
    program = cerflow.parse_program(DIP + "SELECT * FROM dip WHERE dip PARTITION BY [low, k]")
    with pytest.raises(QueryError, match=r"line 2, .*unknown partition key 'k'"):
        program.match([{"type": "A", "v": 1, "k": 2}])


def test_definitions_without_columns() -> None:
    for projection in ("NONE", "*", "a"):
        program = cerflow.parse_program(f"DEFINE d AS SELECT {projection} WHERE A AS a ; B; SELECT * FROM d WHERE d")
        rows = [{"type": name, "v": 1} for name in "AAB"]
        found = program.match(rows).to_pylist()
        assert found == program.match(rows, runner="semantics").to_pylist()
        assert len(found) == (1 if projection == "NONE" else 2)


def test_explanations_show_which_statement_reads_which() -> None:
    program = cerflow.parse_program(DIP + "SELECT * FROM dip, log WHERE dip ; A")
    assert "  dip reads log\n  the query reads dip, log\n" in program.explain()
    dot = program.explain("dot")
    assert 'n1 [label="dip", shape=box];' in dot
    assert 'n2 [label="the query", shape=box, peripheries=2];' in dot
    assert [line.strip() for line in dot.splitlines() if "->" in line] == ["n0 -> n1;", "n1 -> n2;", "n0 -> n2;"]
    schema = cerflow.Schema(pa.schema([("type", pa.string()), ("v", pa.int64())]))
    assert '"definition": "dip"' in program.explain("json", schema)
    program.check(schema)


def test_match_takes_queries_and_programs_first():
    events = [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
    text = "SELECT f.v, s.v WHERE A AS f ; B AS s"
    expected = cerflow.parse(text).match(events, positions=False).to_pylist()
    for query in (text, cerflow.parse(text), cerflow.parse_program(text)):
        assert cerflow.match(query, events, positions=False).to_pylist() == expected
    assert cerflow.match(f"DEFINE p AS {text} ; SELECT p.f_v FROM p WHERE p", events).to_arrow()[
        "p_f_v"
    ].to_pylist() == [1]
    with pytest.raises(cerflow.ArgumentError, match="the query is the first argument"):
        cerflow.match(events, text)


def test_decimals_by_definition():
    program = cerflow.parse_program(
        "DEFINE d AS SELECT a.d AS d WHERE A AS a; "
        "SELECT x.d AS d, b.d AS e FROM d, s WHERE d>EVENT AS x ; s>B AS b FILTER x.d < b.d"
    )
    values = [Decimal("1.50"), Decimal("1.25"), Decimal("2.00")]
    table = pa.table({"type": list("ABB"), "d": pa.array(values, pa.decimal128(10, 2))})
    for runner in ("engine", "semantics"):
        (found,) = program.match(table, runner=runner)
        assert (found["d"], found["e"]) == (values[0], values[2])
