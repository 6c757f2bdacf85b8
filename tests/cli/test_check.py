import json

import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app

QUERY = "SELECT * FROM s WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND hot.id = dry.id WITHIN 3 EVENTS"


def cerflow(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def readings(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text("type,id,value,note\nT,1,41,x\nh,1,20,y\n")
    return path


def test_a_sound_query_gets_a_summary():
    result = cerflow("check", "-e", QUERY)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "ok\nevent types: H, T\nlabels:      dry, hot\nwindow:      3 EVENTS\n"


def test_partitions_are_part_of_the_summary():
    result = cerflow("check", "-e", "SELECT * FROM s WHERE EVENT+ PARTITION BY a, [b, c]")
    assert result.stdout.endswith("window:      none\npartitioned: a, b/c\n")


def test_types_that_never_occur_are_warned_of(readings):
    result = cerflow("check", "-e", QUERY, "--input", readings)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok\n")
    assert result.stderr == "warning: no event of the input has the type 'H'; did you mean 'h'?\n"


def test_rows_that_cannot_be_used_are_warned_of(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("type,id,value\nT,1,41\nH,1,x\n")
    assert "1 row of the input cannot be used; the first is row 1" in cerflow("check", "-e", QUERY, "-i", path).stderr


def test_an_unknown_attribute_is_an_error_for_the_input(readings):
    result = cerflow("check", "-e", QUERY.replace("value", "valve"), "--input", readings)
    assert result.exit_code == 1
    assert "valve" in result.stderr
    assert "value" in result.stderr
    assert "^" in result.stderr


def test_types_that_do_not_fit_are_an_error(readings):
    result = cerflow("check", "-e", "SELECT * FROM s WHERE (T AS x ; H AS y) FILTER x.note < y.id", "--input", readings)
    assert result.exit_code == 1
    assert "^" in result.stderr


def test_sremo_files_can_be_checked(tmp_path):
    path = tmp_path / "q.sremo"
    path.write_text("[type = 'T'] MARK INTO r . [value > r.value] AS high")
    result = cerflow("check", path)
    assert result.stdout.startswith("ok\nevent types: T\nlabels:      event, high\n")
    assert cerflow("check", "-e", path.read_text(), "--language", "sremo").stdout == result.stdout
    assert cerflow("check", "-e", path.read_text()).exit_code == 1
    path.write_text("[type = 'T' MARK")
    result = cerflow("check", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {path}, line 1, column 13:")


@pytest.mark.parametrize("form", ["text", "json", "dot"])
def test_explanations(form, readings):
    for options in ((), ("--input", readings)):
        result = cerflow("explain", "-e", QUERY, "--format", form, *options)
        assert result.exit_code == 0, result.stderr
        if form == "json":
            assert json.loads(result.stdout)
        elif form == "dot":
            assert result.stdout.lstrip().startswith("digraph")
        else:
            assert "hot" in result.stdout


def test_types_that_sremo_names_and_the_input_lacks(readings):
    text = "[type = 'TT'] MARK . [type IN ('T', 'X')] MARK"
    result = cerflow("check", "-e", text, "--language", "sremo", "--input", readings)
    assert result.exit_code == 0, result.stderr
    assert "no event of the input has the type 'TT'; did you mean 'T'?" in result.stderr
    assert "the type 'X'" in result.stderr
    assert "the type 'T'" not in result.stderr


def test_sremo_files_are_explained_with_their_rewriting(tmp_path):
    path = tmp_path / "q.sremo"
    path.write_text("next([type = 'T'] MARK, [value > 40] AS high)")
    result = cerflow("explain", path)
    assert result.exit_code == 0, result.stderr
    assert "rewritten  [type = 'T'] MARK . ([TRUE] & ![value > 40])* . [value > 40] AS high" in result.stdout
    assert json.loads(cerflow("explain", path, "--format", "json").stdout)["evaluable"]
    other = cerflow("explain", "-e", path.read_text(), "--language", "sremo")
    assert other.stdout == result.stdout


def test_an_explanation_needs_a_sound_query():
    result = cerflow("explain", "-e", "SELECT * FROM s WHERE A AS x FILTER y.v > 1")
    assert result.exit_code == 1
    assert "error: line 1, column" in result.stderr


def test_queries_that_never_match_are_warned_of(tmp_path, readings):
    text = "SELECT * FROM s WHERE (T AS hot ; H) FILTER hot.value > 40 AND hot.value < 41"
    assert cerflow("check", "-e", text).stderr == ""
    # As the values are integers:
    result = cerflow("check", "-e", text, "--input", readings)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok\n")
    assert "warning: line 1, column 45: this query can never match\n" in result.stderr
    assert result.stderr.splitlines()[-1] == " " * 44 + "^" * 33
    path = tmp_path / "q.cerflow"
    path.write_text("SELECT * FROM s\nWHERE H OR T OR (T FILTER T.value > 1)")
    result = cerflow("check", path)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {path}, line 2, column 18: this branch of OR is redundant")
