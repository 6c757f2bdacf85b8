import json
from xml.etree import ElementTree

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
    assert (
        "window:      none\npartitioned: a, b/c\nkeys:        one with a partial match is remembered" in result.stdout
    )
    assert "forget= (--key-timeout)" in result.stdout


def test_keys_that_are_forgotten():
    query = "SELECT * WHERE A ; B PARTITION BY k WITHIN"
    assert "keys:" in cerflow("check", "-e", f"{query} 20 EVENTS").stdout
    assert "its window ends only with a later event of that key" in cerflow("check", "-e", f"{query} 20 [t]").stdout
    assert "keys:" not in cerflow("check", "-e", f"{query} 20 SECONDS").stdout


def test_a_key_timeout(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,t,k\nA,1,p\nB,9,p\n")
    given = ("-e", "SELECT * WHERE A ; B PARTITION BY k WITHIN 20 EVENTS", "--input", path, "--time-column", "t")
    assert "keys:" in cerflow("check", *given).stdout
    assert "keys:" not in cerflow("check", *given, "--key-timeout", "5 milliseconds").stdout
    assert "starts again after a pause" in " ".join(cerflow("explain", *given, "--key-timeout", "1 day").stdout.split())
    assert "keys:" not in cerflow("check", "-e", given[1].replace("20 EVENTS", "20 [t]"), *given[2:]).stdout
    for timeout, found in (("5 milliseconds", 0), ("8 milliseconds", 1)):
        result = cerflow("run", "--runner", "local", *given, "--key-timeout", timeout)
        assert len(result.stdout.splitlines()) == found, result.stderr
    result = cerflow("run", "--runner", "local", *given, "--key-timeout", "5")
    assert (result.exit_code, "(days, hours, minutes, seconds, milliseconds)" in " ".join(result.stderr.split())) == (
        2,
        True,
    )


def test_types_that_never_occur_are_warned_of(readings):
    result = cerflow("check", "-e", QUERY, "--input", readings)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok\n")
    first, *_, hint = result.stderr.splitlines()
    assert first.startswith("warning: line 1, column ")
    assert first.endswith(": no event of the input has the type 'H'")
    assert hint == "Did you mean 'h'?"


def test_nothing_that_is_said_reaches_the_terminal_as_a_command(tmp_path):
    path = tmp_path / "r\x1b[2J.csv"
    path.write_text("type,id,value\n\x1b]0;owned\x07H,1,1\nT,1,\x1b[31m\n")
    for arguments in (
        ("check", "-e", 'SELECT * WHERE "]0;ownedH" AS x FILTER x.id = 1', "-i", path),
        ("check", "-e", 'SELECT * WHERE H AS "\x1b[31m" FILTER x.id = 1'),
        ("check", "-e", 'SELECT * WHERE H AS "\x1b[31m"'),
        ("explain", "-e", 'SELECT * WHERE H AS "\x1b[31m"'),
        ("run", "-e", "SELECT * WHERE T AS x FILTER x.value > 1", "-i", path, "--runner", "local", "-o", "-"),
        ("run", "-e", "SELECT * WHERE T", "-i", tmp_path / "no\x1b[2J.csv", "-o", "-"),
        ("check", "-e", "SELECT * WHERE T", "-i", path, "--rename", "a\x1b[2Jb"),
    ):
        result = cerflow(*arguments)
        assert "\x1b" not in result.stderr.replace("\x1b[0m", "").replace("\x1b[1m", ""), arguments
        assert "\x1b" not in result.stdout, arguments


@pytest.mark.parametrize("command", ["check", "explain"])
def test_exclusions_without_effect_are_warned_of(command):
    result = cerflow(command, "-e", "SELECT * WHERE CART AS c WITHOUT (CHECKOUT AS p FILTER p.user = c.user)")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: line 1, column 35: this excludes nothing: ")


def test_a_run_says_which_types_no_event_has(readings):
    result = cerflow("run", "-e", QUERY, "-i", readings, "--runner", "local", "-o", "-")
    assert result.stderr.count("no event of the input has the type 'H'") == 1
    assert "\nDid you mean 'h'?\n" in result.stderr


def test_rows_that_cannot_be_used_are_warned_of(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("type,id,value\nT,1,41\nH,1,x\n")
    assert "1 row of the input cannot be used; the first is row 1" in cerflow("check", "-e", QUERY, "-i", path).stderr


def test_the_columns_are_shown_as_run_reads_them(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("type,zip,price,when,what\nT,00501,1.5,2024-01-01,\nH,501,2,2024-01-02,x\n")
    query = "SELECT * WHERE T AS t ; H AS h FILTER t.zip = h.zip WITHIN 9 EVENTS"
    result = cerflow("check", "-e", query, "-i", path, "--time-column", "when")
    assert result.stdout.endswith(
        "columns:\n  type   text\n  zip    integer\n  price  float\n  when   timestamp\n  what   text\n"
    )
    assert "warning: the column 'zip' is read as integers, so '00501' is 501; the column type text" in result.stderr
    result = cerflow("check", "-e", query, "-i", path, "--column-type", "zip=text")
    assert "  zip    text\n" in result.stdout
    assert result.stderr == ""


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


@pytest.mark.parametrize("form", ["text", "json", "dot", "mermaid", "svg", "boxes"])
def test_explanations(form, readings):
    for options in ((), ("--input", readings)):
        result = cerflow("explain", "-e", QUERY, "--format", form, *options)
        assert result.exit_code == 0, result.stderr
        if form == "json":
            assert json.loads(result.stdout)
        elif form == "dot":
            assert result.stdout.lstrip().startswith("digraph")
        elif form == "mermaid":
            assert result.stdout.startswith("flowchart LR")
        elif form in ("svg", "boxes"):
            assert ElementTree.fromstring(result.stdout).tag.endswith("svg")
        else:
            assert "hot" in result.stdout


def test_types_that_sremo_names_and_the_input_lacks(readings):
    text = "[type = 'TT'] MARK . [type IN ('T', 'X')] MARK"
    result = cerflow("check", "-e", text, "--language", "sremo", "--input", readings)
    assert result.exit_code == 0, result.stderr
    assert "line 1, column 9: no event of the input has the type 'TT'" in result.stderr
    assert "\nDid you mean 'T'?\n" in result.stderr
    assert "the type 'X'" in result.stderr
    assert "the type 'T'" not in result.stderr


def test_sremo_files_are_explained_with_their_rewriting(tmp_path):
    path = tmp_path / "q.sremo"
    path.write_text("next([type = 'T'] MARK, [value > 40] AS high)")
    result = cerflow("explain", path)
    assert result.exit_code == 0, result.stderr
    assert "rewritten  SREMO([type = 'T'] MARK . ([TRUE] & ![value > 40])* . [value > 40] AS high)" in result.stdout
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


def test_times_that_look_like_seconds_are_warned_of(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,t\nA,1700000000\nB,1700000009\n")
    given = ("-e", "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS", "--input", path, "--time-column", "t")
    result = cerflow("check", *given)
    assert "the time column 't', such as 1700000000, look like seconds since 1970" in result.stderr
    result = cerflow("check", *given, "--time-unit", "s")
    assert (result.exit_code, result.stderr) == (0, "")
    assert cerflow("explain", *given, "--time-unit", "s").exit_code == 0


@pytest.mark.parametrize(
    ("where", "windows"),
    [
        ("A ; (B ; C) WITHIN 5 EVENTS", "5 EVENTS"),
        ("(A ; (B ; C) WITHIN 5 EVENTS)", "5 EVENTS for A ; (B ; C)"),
        ("(A ; (B ; C WITHIN 5 EVENTS)) WITHIN 1 HOUR", "1 HOUR, 5 EVENTS for B ; C"),
        ("A ; B", "none"),
    ],
)
def test_windows_say_what_they_bound(where, windows):
    assert f"\nwindow:      {windows}\n" in cerflow("check", "-e", f"SELECT * WHERE {where}").stdout + "\n"


@pytest.mark.parametrize(
    ("query", "sign"),
    [
        ("(T OR H):+ PARTITION BY key", "':+'"),
        ("(T OR H):+ PARTITION BY id", None),
        ("T : H", "':'"),
        ("T:{2}", "':{…}'"),
        ("T : H PARTITION BY [id, key]", "':'"),
        ("T ; H PARTITION BY id", None),
        ("(T OR H OR P):+", None),
        ("T : EVENT", None),
        ("T : H PARTITION BY name", None),
    ],
)
def test_other_types_between_neighbours_are_warned_of(tmp_path, query, sign):
    path = tmp_path / "r.csv"
    path.write_text("type,id,name,key\nT,1,a,1\nP,,b,1\nH,1,a,1\n")
    said = cerflow("check", "-e", f"SELECT * WHERE {query}", "-i", path).stderr
    assert (sign is None) == (said == ""), said
    assert sign is None or f"warning: line 1, column 16: {sign} skips no events, but the input also has" in said


def test_streams_that_are_not_read_lie_nowhere(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("type\nT\nH\n")
    other = tmp_path / "o.csv"
    other.write_text("type\nP\n")
    inputs = ("-i", f"climate={path}", "-i", f"rest={other}")
    assert "skips" in cerflow("check", "-e", "SELECT * FROM climate, rest WHERE T : H", *inputs).stderr
    assert "skips" not in cerflow("check", "-e", "SELECT * FROM climate WHERE T : H", *inputs).stderr


def test_the_first_order_reading(tmp_path):
    query = ("-e", "SELECT * WHERE A AS x OR A AS y", "--reading", "first-order")
    assert "labels:      none of its own" in cerflow("check", *query).stdout
    assert "| {•}" in cerflow("explain", *query).stdout
    events = tmp_path / "events.jsonl"
    events.write_text('{"type": "A"}\n')
    (found,) = cerflow("run", *query, "--input", str(events)).stdout.splitlines()
    assert '"events": [{"position": 0, "labels": [], "type": "A"}]' in found
    refused = cerflow("check", "-e", "[TRUE] MARK", "--language", "sremo", "--reading", "first-order")
    assert refused.exit_code == 1
    assert "the first-order reading is for formulas, not for SREMO or automata" in refused.stderr
