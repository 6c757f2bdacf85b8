"""Events without types, types of other kinds, one type for all events (spec §11)."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import BadRecordError, InputError, QueryError
from cerflow.language.event_kinds import with_kinds
from cerflow.language.formula import UNNAMED
from cerflow.language.parser import parse_condition
from support.conformance import assert_conforms, drawn
from support.generators.queries import TYPES
from support.runners import ENGINE_RUNNERS, bag, examples, semantics

LOGINS = pa.table(
    {
        "result": ["failed", "ok", "ok"],
        "code": [4625, 4624, 4624],
        "user": ["eve", "root", "bob"],
        "remote": [True, False, None],
    }
)


def labelled(text, table=LOGINS, **roles):
    query = cerflow.parse(text)
    found = query.match(table, **roles).to_pylist()
    assert bag(found) == bag(semantics(query, table, **roles))
    return [[(e["position"], e["type"], e["labels"]) for e in row["events"]] for row in found]


def test_kinds_need_no_types():
    text = "DEFINE failed AS result = 'failed', ok AS result = 'ok' SELECT * WHERE failed AS f ; ok"
    assert labelled(text) == [
        [(0, None, ["f", "failed"]), (1, None, ["ok"])],
        [(0, None, ["f", "failed"]), (2, None, ["ok"])],
    ]
    assert labelled(text, type=None) == labelled(text)


def test_event_has_a_label_without_name():
    assert labelled("SELECT * WHERE EVENT AS a : EVENT") == [
        [(0, None, ["a"]), (1, None, [])],
        [(1, None, ["a"]), (2, None, [])],
    ]
    assert len(labelled("SELECT a WHERE EVENT AS a ; EVENT")) == 3


def test_a_type_is_refused_with_ways_out():
    with pytest.raises(
        QueryError, match="'login' is named as the type of an event, but the events have no types"
    ) as no:
        labelled("SELECT * WHERE login")
    for way in ("such as result, code, user", "type=…", "constant_type='login'", "DEFINE login AS condition"):
        assert way in str(no.value)
    with pytest.raises(QueryError, match="Did you mean 'failed'"):
        labelled("DEFINE failed AS result = 'failed' SELECT * WHERE faild ; failed")
    with pytest.raises(QueryError, match=r"unknown label 'user'[^$]*An attribute follows a label, as in x\.user"):
        labelled("SELECT user WHERE EVENT AS x")
    with pytest.raises(QueryError, match="unknown attribute 'type'"):
        labelled("SELECT * WHERE EVENT AS x FILTER x.type = 'a'")
    with pytest.raises(QueryError, match="unknown partition key 'type'"):
        labelled("SELECT * WHERE EVENT AS x PARTITION BY type")
    with pytest.raises(InputError, match="the type column 'Result' is not in the input; did you mean 'result'"):
        labelled("SELECT * WHERE EVENT", type="Result")


def test_types_are_integers_and_booleans():
    assert labelled('SELECT * WHERE "4625" ; "4624" AS x FILTER x.code < 4625 AND x.type = \'4624\'', type="code") == [
        [(0, "4625", ["4625"]), (1, "4624", ["4624", "x"])],
        [(0, "4625", ["4625"]), (2, "4624", ["4624", "x"])],
    ]
    assert labelled('SELECT * WHERE "true" ; "false"', LOGINS.slice(0, 2), type="remote") == [
        [(0, "true", ["true"]), (1, "false", ["false"])]
    ]
    with pytest.raises(BadRecordError, match="row 2: no event type in 'remote'"):
        labelled('SELECT * WHERE "true"', type="remote")
    with pytest.raises(InputError, match="text, integers or booleans, not double; pandas holds integers"):
        labelled("SELECT * WHERE A", pa.table({"type": [1.5]}))


@pytest.mark.parametrize("form", [pa.ChunkedArray.dictionary_encode, pc.run_end_encode, pc.cast])
def test_types_of_other_kinds_in_several_chunks(form):
    types = pa.chunked_array([[7, 8], pa.array([], pa.int16()), [9, 7], [8]], pa.int16())
    table = pa.table({"type": form(types, pa.int16()) if form is pc.cast else form(types), "v": range(5)})
    for rows in (table, table.slice(1), table.slice(5)):
        assert len(labelled('SELECT * WHERE "7" ; "8" AS x', rows)) == {5: 3, 4: 1, 0: 0}[len(rows)]


def test_a_column_called_type_keeps_its_values():
    table = pa.table({"type": [4625, 4624]})
    assert labelled('SELECT * WHERE "4625" AS x FILTER x.type = 4625', table) == [[(0, "4625", ["4625", "x"])]]


def test_one_type_for_all_events():
    assert labelled("SELECT * WHERE login : login", constant_type="login") == [
        [(0, "login", ["login"]), (1, "login", ["login"])],
        [(1, "login", ["login"]), (2, "login", ["login"])],
    ]
    with pytest.raises(ValueError, match="not both"):
        labelled("SELECT * WHERE login", type="user", constant_type="login")


@pytest.mark.parametrize("roles", [{}, {"type": "code"}, {"constant_type": "login"}])
def test_events_one_by_one_and_from_snapshots(roles):
    query = cerflow.parse("DEFINE failed AS result = 'failed' SELECT * WHERE failed ; EVENT AS x")
    expected = query.match(LOGINS, **roles).to_pylist()
    assert len(expected) == 2
    recognizer = query.recognizer(LOGINS.schema, **roles)
    found = []
    for row in LOGINS.to_pylist():
        found += recognizer.push(row).to_pylist()
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    assert found == expected
    assert query.recognizer(LOGINS.schema, **roles).push(LOGINS.to_pylist()).to_pylist() == expected


def test_definitions_of_untyped_events_have_types():
    text = """
    DEFINE failed AS result = 'failed';
    DEFINE s AS SELECT * WHERE failed AS x;
    SELECT * FROM s, logins WHERE s ; logins>EVENT
    """
    program = cerflow.parse_program(text)
    for runner in ("engine", "semantics"):
        found = program.match(LOGINS, runner=runner).to_pylist()
        assert [[(e["type"], e["labels"]) for e in row["events"]] for row in found] == [[("s", ["s"]), (None, [])]] * 2


@examples(150)
@given(st.data())
def test_random_queries_without_types(data):
    typed, table = drawn(data, kinds=False)
    kinds = {name: parse_condition(f"kind = '{name}'", bare_attributes=True) for name in TYPES}
    untyped = cerflow.Query(with_kinds(typed.tree, kinds))
    renamed = table.rename_columns(["kind" if name == "type" else name for name in table.column_names])
    try:
        untyped.result_schema(renamed.schema, time="t")
    except QueryError:
        assume(False)  # it reads the attribute type
    assert_conforms(untyped, renamed, ENGINE_RUNNERS)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("SELECT * WHERE failled : ok", "line 1, column 16: no event of the input has the type 'failled'", "'failed'"),
        ("SELECT * WHERE (ok ; x>gone)", "line 1, column 22: no event of the input has the type 'gone'", "failed, ok"),
        ("SELECT * WHERE SREMO([type = 'OK'] MARK)", "has the type 'OK'", "Did you mean 'ok'?"),
        ("DEFINE s AS SELECT * WHERE faild; SELECT * FROM s WHERE s", "column 28: no event of the input", "'failed'"),
    ],
)
def test_types_that_no_event_has_are_told_where_nothing_matches(text, says, hint):
    query = cerflow.parse_program(text) if text.startswith("DEFINE") else cerflow.parse(text)
    table = LOGINS.append_column("stream", pa.array(["x", "y", "x"]))
    with pytest.warns(cerflow.QueryWarning) as found:
        assert not query.match(table, type="result", stream="stream").count()
    (said,) = {str(warning.message) for warning in found}
    assert {warning.filename for warning in found} == {__file__}
    assert says in said
    assert hint in said


@pytest.mark.filterwarnings("error")
def test_nothing_is_told_of_types_that_occur_or_where_something_matches():
    assert not cerflow.parse("SELECT * WHERE failed : failed").match(LOGINS, type="result").count()
    assert cerflow.parse("SELECT * WHERE failed OR failled").match(LOGINS, type="result").count() == 1
    assert not cerflow.parse("SELECT * WHERE failled").match(LOGINS.slice(0, 0), type="result").count()
    assert not cerflow.parse("DEFINE no AS code = 1 SELECT * WHERE no").match(LOGINS).count()
    assert not cerflow.parse('SELECT * WHERE "4625" : "4625"').match(LOGINS, type="code").count()
    late = pa.table({"type": pa.array(["A"] * 50_000 + ["B"]).dictionary_encode()})
    assert not cerflow.parse("SELECT * WHERE B ; A").match(late).count()


def test_all_types_of_a_long_input_are_looked_for_if_one_is_missing():
    late = pa.table({"type": ["A"] * 50_000 + ["gone"]})
    with pytest.warns(cerflow.QueryWarning, match="(?s)has the type 'C'.*A, gone"):
        assert not cerflow.parse("SELECT * WHERE A ; C").match(late).count()


def test_pages_of_events_without_types_name_no_hidden_column():
    page = cerflow.parse("SELECT * WHERE EVENT AS a : EVENT").match(LOGINS).to_html()
    assert "\\u0000" not in page
    assert "without a type" in page


def test_one_type_is_known_where_no_column_has_types():
    numbers = pa.schema({"kind": pa.int64(), "v": pa.int64()})
    assert cerflow.Schema(numbers).only_type == UNNAMED
    assert cerflow.Schema(numbers, constant_type="login").only_type == "login"
    typed = cerflow.Schema(numbers, type="kind")
    # Workers get its completed columns.
    for schema in (typed, cerflow.Schema(typed.columns, type=typed.type)):
        assert schema.only_type is None
    assert cerflow.Schema(pa.schema({"type": pa.string()})).only_type is None


@pytest.mark.parametrize(
    ("text", "constant", "count"),
    [
        ("SELECT * WHERE EVENT AS a : EVENT AS b FILTER b.v > a.v", None, 2),
        # Each event is an a by its type, too, and none is above itself.
        ("SELECT * WHERE EVENT AS a : EVENT AS b FILTER b.v > a.v", "a", 0),
        ("SELECT * WHERE a AS x : EVENT AS b FILTER b.v > x.v", "a", 2),
        ("SELECT * WHERE NOT(a FILTER a.v > 2) AS x ; EVENT AS y", "a", 4),
        ("SELECT * WHERE NOT(a) AS x ; EVENT AS y", "a", 0),
        ("DEFINE a AS v > 2 SELECT * WHERE a AS x : EVENT AS y", None, 1),
        ("DEFINE a AS v > 2 SELECT * WHERE NOT(a) AS x : EVENT AS a", None, 2),
    ],
)
def test_labels_that_may_be_types(text, constant, count):
    table = pa.table({"v": [1, 3, 2, 5]})
    assert len(labelled(text, table, **({} if constant is None else {"constant_type": constant}))) == count


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()])
@pytest.mark.parametrize("types", ["1234", "1213", "2341"])
@pytest.mark.parametrize(
    "text",
    [
        'SELECT * WHERE (EVENT AS "1" : EVENT AS b) FILTER b.v > "1".v',
        'SELECT * WHERE (EVENT AS "1" ; EVENT AS "3" ; EVENT AS x) FILTER x.v > "3".v',
        'SELECT * WHERE NOT("2") AS "1" ; "3" AS "4" ; EVENT AS "1"',
        'SELECT "1" WHERE (EVENT AS x : EVENT AS "1")',
    ],
)
def test_labels_are_types_only_if_some_event_has_the_type(text, types, kind):
    table = pa.table({"type": pa.array(list(types)).cast(kind), "v": [3, 1, 2, 5]})
    query = cerflow.parse(text)
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    found = [
        query.match(table, runner="semantics"),
        query.match(table),
        query.match(chunks),
        cerflow.QuerySet({"one": query}).match(table)["one"],
    ]
    assert len({tuple(sorted(map(str, matches))) for matches in found}) == 1
