import pyarrow as pa
import pytest

from cerflow.base.errors import QueryError
from cerflow.base.schema import Schema, ValueKind
from cerflow.language.parser import parse_expression, parse_query, parse_sremo
from cerflow.language.select import Select
from cerflow.language.sremo import Regular
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.analysis.types import check_types

COLUMNS = pa.schema(
    [
        ("type", pa.dictionary(pa.int32(), pa.string())),
        ("ts", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("name", pa.string()),
        ("hot", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("gap", pa.duration("us")),
    ]
)
SCHEMA = Schema(COLUMNS, time="ts")
UNTIMED = Schema(COLUMNS)


@pytest.fixture
def near(predicate):
    predicate("near")(lambda x, y: True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x.id", ValueKind.INTEGER),
        ("x.price", ValueKind.FLOAT),
        ("x.amount", ValueKind.FLOAT),
        ("x.name", ValueKind.STRING),
        ("x.type", ValueKind.STRING),
        ("x.hot", ValueKind.BOOLEAN),
        ("x.ts", ValueKind.TIMESTAMP),
        ("x.id + 1", ValueKind.INTEGER),
        ("x.id % 2", ValueKind.INTEGER),
        ("x.id / 2", ValueKind.FLOAT),
        ("x.id * 0.5", ValueKind.FLOAT),
        ("x.id - x.price", ValueKind.FLOAT),
        ("-x.id", ValueKind.INTEGER),
        ("abs(x.price)", ValueKind.FLOAT),
        ("round(x.price)", ValueKind.FLOAT),
        ("floor(x.id)", ValueKind.INTEGER),
        ("upper(x.name)", ValueKind.STRING),
        ("length(x.name)", ValueKind.INTEGER),
        ("position(x)", ValueKind.INTEGER),
        ("time(x)", ValueKind.TIMESTAMP),
        ("5 MINUTES", ValueKind.DURATION),
        ("x.ts - y.ts", ValueKind.DURATION),
        ("x.ts - '2024-01-01'", ValueKind.DURATION),
        ("time(x) + 5 MINUTES", ValueKind.TIMESTAMP),
        ("x.gap + x.ts", ValueKind.TIMESTAMP),
        ("x.ts - x.gap", ValueKind.TIMESTAMP),
        ("x.gap - 1 SECOND", ValueKind.DURATION),
        ("-x.gap * 2.5", ValueKind.DURATION),
        ("3 * abs(x.gap)", ValueKind.DURATION),
        ("x.gap / x.id", ValueKind.DURATION),
        ("x.gap / 1 HOUR", ValueKind.FLOAT),
        ("avg(x.gap)", ValueKind.DURATION),
        ("sum(x.ts - '2024-01-01')", ValueKind.DURATION),
        ("max(x.ts) - min(x.ts)", ValueKind.DURATION),
        ("x.gap + NULL", ValueKind.OTHER),
        ("count(x)", ValueKind.INTEGER),
        ("count(x.name)", ValueKind.INTEGER),
        ("sum(x.id)", ValueKind.INTEGER),
        ("sum(x.price)", ValueKind.FLOAT),
        ("avg(x.id)", ValueKind.FLOAT),
        ("stddev(x.id)", ValueKind.FLOAT),
        ("min(x.ts)", ValueKind.TIMESTAMP),
        ("max(x.name)", ValueKind.STRING),
        ("first(x.hot)", ValueKind.BOOLEAN),
        ("'a'", ValueKind.STRING),
        ("NULL", ValueKind.OTHER),
        ("1.5", ValueKind.FLOAT),
        ("TRUE", ValueKind.BOOLEAN),
    ],
)
def test_kinds(text, kind):
    assert kind_of_expression(parse_expression(text), SCHEMA) is kind


def test_time_is_a_float_where_its_column_is():
    schema = Schema(COLUMNS, time="price")
    assert kind_of_expression(parse_expression("time(x)"), schema) is ValueKind.FLOAT


NUMERIC = Schema(
    pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("d", pa.duration("ms"))]), time="t"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("time(x) + 5 MINUTES", ValueKind.INTEGER),
        ("x.t + 500 MILLISECONDS", ValueKind.INTEGER),
        ("1.5 MILLISECONDS + x.t", ValueKind.FLOAT),
        ("time(x) - x.d", ValueKind.FLOAT),
        ("abs(time(x) - time(y)) / 2 - 1 SECOND", ValueKind.FLOAT),
        ("time(x) / 1 SECOND", None),
        ("x.v + 5 MINUTES", None),
        ("time(x) / time(y) + 1 SECOND", None),
        ("time(x) % 1000 + 1 SECOND", None),
    ],
)
def test_durations_beside_a_numeric_time(text, kind):
    if kind is None:
        with pytest.raises(QueryError, match="cannot combine") as caught:
            kind_of_expression(parse_expression(text), NUMERIC)
        assert "becomes a duration with its unit" in str(caught.value)
    else:
        assert kind_of_expression(parse_expression(text), NUMERIC) is kind


def test_positions_are_no_times():
    with pytest.raises(QueryError, match="a duration cannot be compared") as caught:
        check_types(parse_query("SELECT * WHERE (A AS x ; B AS y) FILTER 5 SECONDS > time(y) - time(x)"), UNTIMED)
    assert "Without a time column" in str(caught.value)


def test_event_type_is_an_attribute_called_type():
    schema = Schema(pa.schema([("kind", pa.string())]), type="kind")
    check_types(parse_query("SELECT x.type AS t WHERE A AS x FILTER x.type = 'A' AND x.kind = 'A'"), schema)


@pytest.mark.parametrize(
    "condition",
    [
        "x.id = 1.5",
        "x.ts > '2024-02-29 12:00:00'",
        "'2024-02-29T12:00:00+01:00' < x.ts",
        "x.ts BETWEEN '2024-01-01' AND '2024-12-31'",
        "x.ts IN ('2024-01-01', NULL)",
        "x.ts = y.ts",
        "x.hot = TRUE",
        "x.hot != y.hot",
        "x.name LIKE 'a%' AND x.type REGEXP 'A'",
        "x.name IN ('a', 'b')",
        "x.id IN (1, 2.5, NULL)",
        "x.name = NULL",
        "x.tags IS NOT NULL",
        "x.id BETWEEN 1 AND y.price",
        "x[id > 1 AND price < y.price]",
        "increasing(x.ts)",
        "sum(x.price) / count(x) > 3",
        "x.name < y.name",
        "near(x, y)",
        "near(x.hot, y.name)",
        "near(x.gap, max(y.ts))",
        "near(time(x), 5 MINUTES)",
        "y.ts - x.ts < 5 MINUTES",
        "x.gap IN (5 MINUTES, NULL)",
        "x.gap BETWEEN 1 SECOND AND y.gap",
        "increasing(x.gap)",
    ],
)
@pytest.mark.usefixtures("near")
def test_conditions_that_fit(condition):
    check_types(parse_query(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}"), SCHEMA)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("x.id = '3'", "Write the number without quotes: 3."),
        ("'-2.5' < x.price", "Write the number without quotes: -2.5."),
        ("x.id BETWEEN 1 AND '5'", "Write the number without quotes: 5."),
        ("x.id IN ('5', '6')", "Write the number without quotes: 5."),
        ("x.name > 5", "Write it in quotes: '5'."),
        ("x.name IN (5)", "Write it in quotes: '5'."),
        ("x.hot = 1", "Write TRUE."),
        ("0 = x.hot", "Write FALSE."),
        ("x.hot = 'True'", "Write TRUE."),
        ("x.hot = 2", None),
        ("x.hot = '1'", None),
        ("x.id = 'one'", None),
        ("x.id = y.name", None),
    ],
)
def test_how_a_literal_of_another_kind_is_written(condition, hint):
    with pytest.raises(QueryError) as caught:
        check_types(parse_query(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}"), SCHEMA)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("condition", "place", "message", "suggestion"),
    [
        ("x.prise > 1", "x.prise", "unknown attribute 'prise'", "price"),
        ("y[Price > 1]", "Price", "unknown attribute 'Price'", "price"),
        ("near(x, y.prise)", "y.prise", "unknown attribute 'prise'", "price"),
        ("near(x.name + 1, y)", "x.name", "'+' needs numbers, but this is a string", None),
        ("near(x.tags, y)", "x.tags", "which expressions cannot use", None),
        ("NOT x.zzzz = 1", "x.zzzz", "unknown attribute 'zzzz'", None),
        ("x.name > 1", "x.name > 1", "a string cannot be compared with an integer", None),
        ("x.id = 'one'", "x.id = 'one'", "an integer cannot be compared with a string", None),
        ("x.hot < y.hot", "x.hot < y.hot", "booleans have no order", None),
        ("x.id AND x.hot", "x.id", "x.id is an integer, but a condition is expected", None),
        ("x.hot = 1", "x.hot = 1", "a boolean cannot be compared with an integer", None),
        ("x.ts > 5", "x.ts > 5", "a timestamp cannot be compared with an integer", None),
        ("x.ts > 'yesterday'", "'yesterday'", "'yesterday' is not a timestamp", None),
        ("x.ts > y.name", "y.name", "a timestamp cannot be compared with a string", None),
        ("x.tags = 'a'", "x.tags", "has type list<item: string>", None),
        ("x.name + 1 = 2", "x.name", "'+' needs numbers, but this is a string", None),
        ("1 - x.ts = 2", "1 - x.ts", "'-' cannot combine an integer with a timestamp", None),
        ("x.ts + y.ts = 2", "x.ts + y.ts", "'+' cannot combine a timestamp with a timestamp", None),
        ("x.ts + '2024-01-01' = x.ts", "x.ts + '2024-01-01'", "'+' cannot combine a timestamp with a string", None),
        ("x.ts - y.name = x.gap", "y.name", "a timestamp cannot meet a string", None),
        ("x.ts - 'noon' = x.gap", "'noon'", "'noon' is not a timestamp", None),
        ("x.gap - x.ts = x.gap", "x.gap - x.ts", "'-' cannot combine a duration with a timestamp", None),
        ("x.gap * x.gap > x.gap", "x.gap * x.gap", "'*' cannot combine a duration with a duration", None),
        ("x.gap % 2 = x.gap", "x.gap % 2", "'%' cannot combine a duration with an integer", None),
        ("1 / x.gap > 1", "1 / x.gap", "'/' cannot combine an integer with a duration", None),
        ("x.gap + 1 > x.gap", "x.gap + 1", "'+' cannot combine a duration with an integer", None),
        ("x.gap > 5", "x.gap > 5", "a duration cannot be compared with an integer", None),
        ("x.gap > '5 minutes'", "x.gap > '5 minutes'", "a duration cannot be compared with a string", None),
        ("x.ts > 5 MINUTES", "x.ts > 5 MINUTES", "a timestamp cannot be compared with a duration", None),
        ("x.id IN (5 MINUTES)", "5 MINUTES", "an integer cannot be compared with a duration", None),
        ("time(y) - time(x) < 5", "time(y) - time(x) < 5", "a duration cannot be compared with an integer", None),
        ("round(x.gap) > 1 SECOND", "x.gap", "round needs numbers, but this is a duration", None),
        ("stddev(x.gap) > 1 SECOND", "x.gap", "stddev needs numbers, but this is a duration", None),
        ("avg(x.ts) > x.ts", "x.ts", "avg needs numbers, but this is a timestamp", None),
        ("-x.ts > x.ts", "x.ts", "'-' needs numbers, but this is a timestamp", None),
        ("near(x.gap * 2, y)", "x.gap * 2", "this is a computed timestamp or duration", None),
        ("-x.name = 2", "x.name", "'-' needs numbers", None),
        ("abs(x.name) = 2", "x.name", "abs needs numbers", None),
        ("upper(x.id) = 'A'", "x.id", "upper needs a string, but this is an integer", None),
        ("length(x.id) = 1", "x.id", "length needs a string", None),
        ("x.id LIKE 'a%'", "x.id", "LIKE needs a string", None),
        ("x.price REGEXP 'a'", "x.price", "REGEXP needs a string", None),
        ("x.id IN (1, 'two')", "'two'", "an integer cannot be compared with a string", None),
        ("x.name BETWEEN 'a' AND 3", "3", "a string cannot be compared with an integer", None),
        ("sum(x.name) > 1", "x.name", "sum needs numbers", None),
        ("avg(x.hot) > 1", "x.hot", "avg needs numbers", None),
        ("max(x.hot) = TRUE", "x.hot", "max needs values that have an order", None),
        ("increasing(x.hot)", "x.hot", "increasing needs values that have an order", None),
    ],
)
@pytest.mark.usefixtures("near")
def test_conditions_that_do_not_fit(condition, place, message, suggestion):
    text = f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}"
    with pytest.raises(QueryError) as caught:
        check_types(parse_query(text), SCHEMA)
    error = caught.value
    assert message in error.reason
    assert error.suggestion == suggestion
    assert error.span is not None
    assert text[error.span.start : error.span.end] == place


def test_conditions_of_not_are_checked():
    with pytest.raises(QueryError, match="unknown attribute 'prize'"):
        check_types(parse_query("SELECT * WHERE A ; NOT(B FILTER B.prize > 1)"), SCHEMA)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * WHERE A WITHIN 5 [name]", "a window needs a numeric attribute, but 'name' is a string"),
        ("SELECT * WHERE A WITHIN 5 [nam]", "unknown attribute 'nam'"),
        ("SELECT * WHERE (A WITHIN 5 [ts]) ; B", "a window needs a numeric attribute"),
        ("SELECT * WHERE A NOT FOLLOWED BY B FOR 5 [name]", "a window needs a numeric attribute, but 'name' is a"),
        ("SELECT * WHERE A NOT FOLLOWED BY (B FILTER B.nam = 1) FOR 1 EVENT", "unknown attribute 'nam'"),
        ("SELECT * WHERE A PARTITION BY idd", "unknown partition key 'idd'"),
        ("SELECT * WHERE A PARTITION BY tags", "partition key 'tags' has type list<item: string>"),
        ("SELECT * WHERE A PARTITION BY [id, name]", "'id' is an integer and 'name' a string"),
        ("SELECT x[prise] WHERE A AS x", "unknown attribute 'prise'"),
        ("SELECT x.prise AS p WHERE A AS x", "unknown attribute 'prise'"),
        ("SELECT x.name + 1 AS p WHERE A AS x", "'+' needs numbers"),
    ],
)
def test_queries_that_do_not_fit(query, message):
    with pytest.raises(QueryError) as caught:
        check_types(parse_query(query), SCHEMA)
    assert message in caught.value.reason
    assert caught.value.span is not None


def test_the_partition_key_itself_is_underlined():
    text = "SELECT * WHERE A PARTITION BY id, [name, nam]"
    with pytest.raises(QueryError, match="Did you mean 'name'") as caught:
        check_types(parse_query(text), SCHEMA)
    caught.value.with_source(text)
    assert str(caught.value).splitlines()[2] == " " * text.index("nam]") + "^^^"


@pytest.mark.parametrize("text", ["SELECT * WHERE A PARTITION BY u", "SELECT * WHERE A AS x FILTER x.u = 1"])
def test_a_field_is_proposed_instead_of_its_struct(text):
    nested = Schema(pa.schema([("type", pa.string()), ("u", pa.struct([("id", pa.int64())]))]))
    with pytest.raises(QueryError, match=r"Name one of its fields, such as u\.id"):
        check_types(parse_query(text), nested)


@pytest.mark.parametrize("text", ["SELECT * WHERE A AS x PARTITION BY x.id", "DEFINE k AS x.id = 1 SELECT * WHERE k"])
def test_attributes_without_a_label_need_none(text):
    with pytest.raises(QueryError, match="Write id, without a label"):
        check_types(parse_query(text), SCHEMA)


@pytest.mark.parametrize("formula", ["A ; (B ; C) WITHIN 5 MINUTES", "A ; (B NOT FOLLOWED BY C FOR 5 MINUTES)"])
def test_windows_of_time_need_a_time_column(formula):
    query = parse_query(f"SELECT * WHERE {formula}")
    check_types(query, SCHEMA)
    with pytest.raises(QueryError, match="needs a time column"):
        check_types(query, UNTIMED)


def test_queries_that_fit():
    check_types(
        parse_query(
            "SELECT x[id, price], x.price * 2 AS twice WHERE A AS x ; B+ PARTITION BY id, [price, amount] WITHIN 5 [id]"
        ),
        SCHEMA,
    )


def test_expressions_with_memory():
    check_types(Select(Regular(parse_sremo("[price > 1] MARK INTO r . [name = r.name AND type = 'A'] MARK"))), SCHEMA)
    with pytest.raises(QueryError, match="unknown attribute 'prise'"):
        check_types(Select(Regular(parse_sremo("[prise > 1] MARK"))), SCHEMA)
    with pytest.raises(QueryError, match="needs a time column"):
        check_types(Select(Regular(parse_sremo("[price > 1] MARK WITHIN 5 SECONDS"))), UNTIMED)


def test_deep_expressions():
    long_sum = " + ".join(["x.id"] * 1000)
    long_and = " AND ".join(["x.id > 0"] * 1000)
    check_types(parse_query(f"SELECT {long_sum} AS total WHERE A AS x FILTER {long_and}"), SCHEMA)


ZONES = Schema(
    pa.schema(
        [
            *(("type", pa.string()), ("day", pa.date32()), ("gap", pa.duration("us"))),
            *(("d", pa.timestamp("us")), ("n", pa.timestamp("ns"))),
            *(("e", pa.timestamp("us", "UTC")), ("t", pa.timestamp("s", "Europe/Vienna"))),
        ]
    ),
    time="t",
)


@pytest.mark.parametrize(
    ("condition", "place", "local", "zoned"),
    [
        ("x.d < y.e", "x.d < y.e", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("x.e != x.n", "x.e != x.n", "'n' is timestamp[ns]", "'e' is timestamp[us, tz=UTC]"),
        ("time(x) < y.d", "time(x) < y.d", "'d' is timestamp[us]", "'t' is timestamp[s, tz=Europe/Vienna]"),
        ("x.e - y.d < 5 MINUTES", "x.e - y.d", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("x.d + y.gap > y.e", "x.d + y.gap > y.e", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("y.gap + x.d > x.e", "y.gap + x.d > x.e", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("max(x.d) < y.e", "max(x.d) < y.e", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("x[d > prev(e)]", "d > prev(e)", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("x.e BETWEEN y.t AND y.d", "y.d", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("coalesce(x.e, y.d) IS NULL", "y.d", "'d' is timestamp[us]", "'e' is timestamp[us, tz=UTC]"),
        ("x.day = y.e", "x.day = y.e", "'day' is date32[day]", "'e' is timestamp[us, tz=UTC]"),
    ],
)
def test_times_with_and_without_a_zone_do_not_go_together(condition, place, local, zoned):
    text = f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}"
    with pytest.raises(QueryError) as raised:
        check_types(parse_query(text), ZONES)
    assert f"cannot be mixed: {local}, but {zoned}" in raised.value.reason
    assert text[raised.value.span.start : raised.value.span.end] == place
    assert "assume_timezone" in str(raised.value)


def test_nor_in_one_partition_key():
    with pytest.raises(QueryError, match="'d' is timestamp"):
        check_types(parse_query("SELECT * WHERE A ; B PARTITION BY [d, e]"), ZONES)


@pytest.mark.parametrize(
    "condition",
    [
        "x.d < y.n AND x.e < y.t AND x.day <= y.d",
        "x.d - x.n < y.e - y.t",
        "x.d - x.n < 5 MINUTES AND x.d + (y.e - x.t) > y.n",
        "x.d > '2024-01-01T00:00:00Z' AND x.e > '2024-01-01'",
        "x.d IS NOT NULL AND year(x.d) = year(y.e)",
    ],
)
def test_times_that_go_together(condition):
    check_types(parse_query(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} PARTITION BY d, e"), ZONES)
