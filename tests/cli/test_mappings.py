"""Inputs with columns of their own: ``--type-column NAME=…``, ``--constant-type``, ``--rename``."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from cerflow.api.stream_inputs import Input
from cerflow.cli.app import app
from cerflow.cli.commands.request import mapped
from cerflow.cli.options import InputOptions
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.sources import InputFormat, Source
from cerflow.logic.analysis.columns import ColumnUsage

QUERY = (
    "SELECT q, s, s.price - q.price AS change FROM quotes, trades "
    "WHERE quotes>QUOTE AS q ; trades>SELL AS s FILTER s.price >= q.price WITHIN 10 SECONDS"
)
MAPPING = [
    *("--type-column", "trades=kind", "--constant-type", "quotes=QUOTE"),
    *("--time-column", "trades=at", "--time-column", "quotes=ts", "--rename", "trades=price=px"),
]


def cerflow(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "t.csv").write_text("kind,at,px,007\nBUY,2,10,007\nSELL,4,11,007\nSELL,hot,12,8\n,6,13,9\n")
    pyarrow.parquet.write_table(pa.table({"ts": [1, 3, 5], "price": [9.5, 12.0, 12.5]}), tmp_path / "quotes.parquet")
    return ["--input", f"trades={tmp_path / 't.csv'}", "--input", tmp_path / "quotes.parquet"]


def test_each_input_has_columns_of_its_own(inputs, tmp_path):
    dead = tmp_path / "dead.jsonl"
    options = ["--runner", "local", "--on-bad-record", f"dead-letter={dead}", "--rename", "trades=code=007"]
    result = cerflow("run", "-e", QUERY, *inputs, *MAPPING, *options)
    assert result.exit_code == 0, result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["change"] == 1.5
    assert [(e["type"], e["price"], e["time"], e["stream"]) for e in row["events"]] == [
        ("QUOTE", 9.5, 1, "quotes"),
        ("SELL", 11.0, 4, "trades"),
    ]
    letters = [json.loads(line) for line in dead.read_text().splitlines()]
    assert [(d["row"], d["time"], d["price"], d["code"]) for d in letters] == [
        (2, "hot", "12", "8"),
        (3, "6", "13", "9"),
    ]


def test_check_and_explain_know_the_columns_too(inputs):
    known = cerflow("check", "-e", QUERY, *inputs, *MAPPING)
    assert known.exit_code == 0, known.stderr
    assert "2 rows of the input cannot be used" in known.stderr
    assert cerflow("explain", "-e", QUERY, *inputs, *MAPPING).exit_code == 0
    unknown = cerflow("check", "-e", QUERY.replace("price", "cost"), *inputs, *MAPPING)
    assert unknown.exit_code == 1
    assert "'cost'" in unknown.stderr


def test_one_type_for_all(tmp_path):
    (tmp_path / "a.csv").write_text("v\n1\n2\n")
    result = cerflow("run", "-e", "SELECT * WHERE X ; X", "--input", tmp_path / "a.csv", "--constant-type", "X",
                     "--runner", "local")  # fmt: skip
    assert len(result.stdout.splitlines()) == 1


def test_files_of_one_stream_are_mapped_alike(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("k,v\nA,1\n")
    inputs = [f"--input=s={tmp_path / name}.csv" for name in ("a", "b")]
    result = cerflow("run", "-e", "SELECT * FROM s WHERE s>A", *inputs, "--type-column", "s=k", "--runner", "local")
    assert len(result.stdout.splitlines()) == 2


def test_text_stays_text_under_its_new_name(tmp_path):
    (tmp_path / "a.csv").write_text("type,c\nA,007\n")
    query = "SELECT x[code] WHERE A AS x FILTER x.code = '007'"
    result = cerflow("run", "-e", query, "--input", tmp_path / "a.csv", "--rename", "code=c", "--runner", "local")
    assert json.loads(result.stdout)["events"][0]["code"] == "007"
    one = Input(None, type="kind", rename={"c": "code", "e": "other"})
    columns = ColumnRoles(usage=ColumnUsage(text=frozenset({"code", "d"}), numbers=frozenset({"other"})))
    uses = [columns.use_in(one, name) for name in ("kind", "c", "d", "e", "x")]
    assert uses == ["text", "text", "text", "number", "other"]


def test_types_of_columns(tmp_path):
    (tmp_path / "a.csv").write_text("type,zip\nA,00501\nA,501\n")
    (tmp_path / "b.csv").write_text("type,zip\nB,501\nB,00501\n")
    query = "SELECT COUNT(*) AS n WHERE EVENT AS a ; EVENT AS b FILTER a.zip = b.zip"

    def count(*options):
        inputs = ["--input", tmp_path / "a.csv", "--input", tmp_path / "b.csv"]
        result = cerflow("run", "-e", query, *inputs, *options, "--runner", "local")
        assert result.exit_code == 0, result.stderr
        return sum(json.loads(line)["n"] for line in result.stdout.splitlines())

    assert (count(), count("--column-type", "zip=text")) == (6, 2)
    assert count("--column-type", "a=zip=text", "--column-type", "b=zip=text") == 2


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--column-type", "zip"], 2, "is not of the form"),
        (["--column-type", "zip=string"], 2, "there is no column type 'string'"),
        (["--column-type", "c=zip=text"], 2, "there is no input 'c'"),
        (["--column-type", "zip=text", "--column-type", "zip=float"], 2, "gets two types"),
        (["--column-type", "zap=text"], 1, "the column 'zap', whose type is given, is not in the input"),
        (["--encoding", "utf9"], 1, "there is no encoding 'utf9'; did you mean 'utf-8'"),
    ],
)
def test_types_and_encodings_that_are_not_there(tmp_path, options, code, says):
    (tmp_path / "a.csv").write_text("type,zip\nA,00501\n")
    result = cerflow("run", "-e", "SELECT * WHERE A", "--input", tmp_path / "a.csv", *options, "--runner", "local")
    assert result.exit_code == code
    assert says in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rename", "trades=price=pxx"], "the column 'pxx', which is to be renamed, is not in the input 'trades'"),
        (["--type-column", "trades=knd"], "the type column 'knd' is not in the input 'trades'; did you mean 'kind'"),
        (["--time-column", "trades=at"], "the input 'quotes' has no time column, but the input 'trades' has one"),
        ([], "is named as the type of an event, but the events have no types"),
    ],
)
def test_columns_that_are_not_there(inputs, options, says):
    result = cerflow("run", "-e", QUERY.replace("WITHIN 10 SECONDS", ""), *inputs, *options, "--runner", "local")
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert says in result.stderr


def test_types_that_do_not_fit_together_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("type,v\nA,x\n")
    (tmp_path / "b.csv").write_text("type,v\nA,1\n")
    inputs = [f"--input={tmp_path / name}.csv" for name in ("a", "b")]
    result = cerflow("run", "-e", "SELECT * WHERE A", *inputs, "--runner", "local")
    assert "the column 'v' is string in 'a' and int64 in 'b'; convert or rename it" in result.stderr


SOURCES = [Source(f"{name}.csv", InputFormat.CSV, (), name) for name in ("trades", "quotes")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (InputOptions(type=["trade=kind"]), "there is no input 'trade'; the inputs are trades, quotes"),
        (InputOptions(rename=["trade=a=b"]), "there is no input 'trade'"),
        (InputOptions(rename=["a"]), "'a' is not of the form"),
        (InputOptions(rename=["a=b=c=d"]), "'a=b=c=d' is not of the form"),
        (InputOptions(rename=["a=b", "c=b"]), "the column 'b' gets two names: 'a' and 'c'"),
        (InputOptions(time=["trades="]), "'trades=' is not of the form"),
        (InputOptions(time=["a", "b"]), "given twice for all inputs: 'a' and 'b'"),
        (InputOptions(time=["trades=a", "trades=b"]), "given twice for the input 'trades': 'a' and 'b'"),
        (InputOptions(type=["k"], constant_type=["X"]), "all inputs have a type column already"),
        (InputOptions(type=["trades=k"], constant_type=["trades=X"]), "the input 'trades' has a type column already"),
    ],
)
def test_options_that_do_not_go_together(options, says):
    with pytest.raises(typer.BadParameter, match=says):
        mapped(SOURCES, options)


def test_what_is_said_of_one_input_goes_before_what_is_said_of_all():
    options = InputOptions(type=["trades=kind"], constant_type=["X"], rename=["a=b", "quotes=c=d"], time=["t"])
    (trades, quotes), roles = mapped(SOURCES, options)
    assert (trades.type, trades.constant_type, trades.rename) == ("kind", None, {"b": "a"})
    assert (quotes.type, quotes.constant_type, quotes.rename) == (None, "X", {"b": "a", "d": "c"})
    assert roles == {"type": "kind", "time": "t"}


def test_wrong_use_has_its_exit_code(inputs):
    result = cerflow("run", "-e", QUERY, *inputs, "--type-column", "trade=kind", "--runner", "local")
    assert result.exit_code == 2
    assert "there is no input 'trade'" in result.stderr
