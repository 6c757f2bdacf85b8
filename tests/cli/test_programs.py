"""Queries with definitions on the command line."""

import json

import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app

PROGRAM = """
DEFINE dip AS SELECT b.price - a.price AS size, b.name AS name FROM stocks
  WHERE (BUY AS a : BUY AS b) FILTER b.price < a.price PARTITION BY key;
SELECT d.size AS size, n.text AS text FROM dip, news WHERE dip AS d : news>EVENT_ AS n FILTER d.size < -1
""".replace("EVENT_", "REPORT")
STOCKS = "type,at,price,key,name\nBUY,1,5,1,a\nBUY,2,3,1,b\nBUY,3,2,1,c\nBUY,9,0,1,d\n"
NEWS = "type,at,text\nREPORT,2,loss\nREPORT,4,gain\n"


def cerflow(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def files(tmp_path):
    (tmp_path / "stocks.csv").write_text(STOCKS)
    (tmp_path / "news.csv").write_text(NEWS)
    (tmp_path / "dips.ceql").write_text(PROGRAM)
    return tmp_path


def inputs(files):
    return [f"--input=stocks={files / 'stocks.csv'}", f"--input=news={files / 'news.csv'}", "--time-column=at"]


def test_run(files):
    result = cerflow("run", files / "dips.ceql", *inputs(files))
    assert result.exit_code == 0, result.stderr
    (row,) = [json.loads(line) for line in result.stdout.splitlines()]
    # In the stream of dips and news: the dip at 2 (size -2), the news at 2, the dip at 3, the news at 4, …
    places = {"detected_at": 1, "detected_time": 2, "start": 0, "end": 1, "start_time": 2, "end_time": 2}
    assert row == {**places, "size": -2, "text": "loss"}
    assert "6 events, 1 match, 0 bad records" in result.stderr
    assert "no event" not in result.stderr
    assert "in this process: the input needs about" in result.stderr


def test_check_says_what_each_statement_reads(files):
    result = cerflow("check", files / "dips.ceql", *inputs(files))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("ok\n")
    assert "definition dip, reads stocks\nevent types: BUY\n" in result.stdout
    assert "query, reads dip, news\n" in result.stdout
    assert result.stderr == ""


def test_check_warns_and_refuses_with_the_place(files):
    result = cerflow("check", "-e", PROGRAM.replace("FROM dip,", "FROM dipp,"))
    assert "nothing reads the definition 'dip'; did you mean FROM dipp?" in result.stderr
    result = cerflow("check", "-e", PROGRAM.replace("d.size < -1", "d.sice < -1"))
    assert result.exit_code != 0
    assert "have no attribute 'sice'" in result.stderr
    assert "Did you mean size?" in result.stderr


def test_explain(files):
    result = cerflow("explain", files / "dips.ceql", *inputs(files))
    assert result.exit_code == 0, result.stderr
    assert "the query reads dip, news" in result.stdout
    assert 'label="dip", shape=box' in cerflow("explain", files / "dips.ceql", "--format", "dot").stdout


def test_a_computed_column_says_nothing_of_a_column_of_the_input(files):
    # The names of the input are text, although those of dips are compared with a number.
    text = PROGRAM.partition(";")[0].replace("b.name AS name", "b.price AS name")
    text += "; SELECT d.name AS name FROM dip WHERE dip AS d FILTER d.name < 3"
    result = cerflow("run", "-e", text, *inputs(files))
    assert result.exit_code == 0, result.stderr
    assert "6 events, 2 matches, 0 bad records" in result.stderr


def test_a_type_may_be_called_define(files):
    result = cerflow("check", "-e", "SELECT * WHERE DEFINE ; A")
    assert result.exit_code == 0, result.stderr
    assert "event types: A, DEFINE" in result.stdout
