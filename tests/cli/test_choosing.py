"""``--runner auto``: where a run goes, and what is said of it."""

import json

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cerflow.api.stream_inputs import Input
from cerflow.cli.app import app
from cerflow.cli.commands.request import Request, load_query
from cerflow.cli.options import InputOptions, OutputOptions, QueryOptions, RunOptions
from cerflow.cli.spark import session as choosing
from cerflow.cli.spark.session import available_memory, choose_runner, memory_needed
from cerflow.files.sources import InputFormat, parse_source


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("type\nA\nB\n")
    return Input(parse_source(str(path)))


def test_what_fits_is_read_here(source, capsys):
    spark, reason = choose_runner([source], [])
    assert not spark
    assert reason.startswith("in this process: the input needs about 36 bytes of ")
    assert capsys.readouterr().err == ""


def test_options_of_spark_choose_it(source):
    assert choose_runner([source], ["--master"]) == (True, "on Spark, because of --master")


@pytest.mark.parametrize("limit", [["--memory", "1 GB"], ["--timeout", "1 minute"]])
def test_limits_of_this_process_choose_it(source, monkeypatch, limit):
    monkeypatch.setattr(choosing, "available_memory", lambda: 1)
    given = ["run", "-e", "SELECT * WHERE A ; B", "-i", source.events.path, *limit]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.stderr
    assert f"in this process, because of {limit[0]}" in result.stderr
    for more in (["--master", "local[1]"], ["--runner", "spark"]):
        refused = CliRunner().invoke(app, [*given, *more])
        assert refused.exit_code == 2
        assert f"Invalid value for '{limit[0]}'" in refused.stderr


def test_standard_input_is_read_here():
    found = choose_runner([Input(parse_source("-", InputFormat.CSV))], [])
    assert found == (False, "in this process, as standard input is")


def test_what_does_not_fit_goes_to_spark_if_there_is_one(source, monkeypatch, capsys):
    monkeypatch.setattr(choosing, "available_memory", lambda: 71)
    monkeypatch.setattr(choosing, "java_problem", lambda: None)
    monkeypatch.setattr(choosing, "find_spec", lambda _: object())
    figures = "the input needs about 36 bytes of 71 bytes of free memory"
    assert choose_runner([source], []) == (True, "")
    assert capsys.readouterr().err == f"on Spark: {figures}\n"
    monkeypatch.setattr(choosing, "available_memory", lambda: 72)
    assert not choose_runner([source], [])[0]
    monkeypatch.setattr(choosing, "available_memory", lambda: 71)
    monkeypatch.setattr(choosing, "java_problem", lambda: "there is no java")
    assert choose_runner([source], []) == (False, "")
    assert f"warning: {figures}, but it is read in this process, because there is no java\n" in capsys.readouterr().err
    monkeypatch.setattr(choosing, "find_spec", lambda _: None)
    assert choose_runner([source], []) == (False, "")
    assert "PySpark is not installed (pip install" in capsys.readouterr().err


def test_estimates_follow_format_and_packing(tmp_path):
    table = pa.table({"type": ["A"] * 1000, "v": range(1000)})
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
    pyarrow.orc.write_table(table, tmp_path / "o.orc")
    assert memory_needed(tmp_path / "p.parquet", InputFormat.PARQUET) == 96_000
    assert memory_needed(tmp_path / "o.orc", InputFormat.ORC) == 96_000
    for use, each in ((True, 48_000), (False, 16_000), (None, 0)):
        for name in ("p.parquet", "o.orc"):
            needed = memory_needed(tmp_path / name, InputFormat(name[2:]), lambda c, use=use: c == "type" or use)
            assert needed == 48_000 + each
    (tmp_path / "a.csv").write_bytes(b"x" * 100)
    (tmp_path / "a.csv.gz").write_bytes(b"x" * 100)
    assert memory_needed(tmp_path / "a.csv", InputFormat.CSV) == 400
    assert memory_needed(tmp_path / "a.csv.gz", InputFormat.CSV) == 3200
    assert memory_needed(tmp_path / "a.csv", InputFormat.JSON) == 800
    # What cannot be read is for the reader to refuse.
    assert memory_needed(tmp_path / "a.csv", InputFormat.PARQUET) == 0
    assert 0 < available_memory() < 1 << 50


def test_only_columns_that_are_read_count(tmp_path):
    table = pa.table({"kind": ["A"] * 1000, "t": range(1000), "w": range(1000), "n": [{"a": 1, "b": 2}] * 1000})
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    pyarrow.parquet.write_table(table.take(list(range(999, -1, -1))), tmp_path / "back.parquet", row_group_size=500)

    def needed(name, select):
        query = load_query(QueryOptions(expression=f"SELECT {select} WHERE (A AS x ; A AS y) FILTER x.v > y.v"))
        columns = {"type": ["kind"], "time": ["t"], "rename": ["v=w"]}
        inputs = InputOptions(inputs=[str(tmp_path / name)], **columns)
        request = Request(query, inputs, OutputOptions(), RunOptions())
        one = request.inputs.inputs[0]
        return memory_needed(tmp_path / name, InputFormat.PARQUET, lambda column: request.evaluates(one, column))

    # Row groups in order are read one by one, of other files the whole.
    assert needed("in.parquet", "*") == 3 * 48_000
    assert needed("back.parquet", "*") == 3 * 48_000 + 2 * 16_000
    assert needed("in.parquet", "x[n.a]") == 5 * 48_000


@pytest.mark.parametrize(
    ("line", "folder", "limit", "used"),
    [
        ("0::/a/b", "a", "memory.max", "memory.current"),
        ("4:memory:/a", "memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("0::/hidden", ".", "memory.max", "memory.current"),
    ],
)
def test_control_groups_limit_memory(tmp_path, line, folder, limit, used):
    (tmp_path / "cgroup").write_text(f"3:cpu:/\n{line}\n")
    place = tmp_path / "fs" / folder
    place.mkdir(parents=True)
    (place / "memory.stat").write_text("anon 20\ninactive_file 30\n")
    (place / limit).write_text("1000\n")
    (place / used).write_text("600\n")
    assert list(choosing._groups(tmp_path / "cgroup", tmp_path / "fs")) == [430]
    (place / limit).write_text("max\n")
    assert not list(choosing._groups(tmp_path / "cgroup", tmp_path / "fs"))


def test_a_run_says_where_it_went(source, monkeypatch):
    def run(*arguments):
        result = CliRunner().invoke(app, ["run", "-e", "SELECT * WHERE A ; B", "-i", source.events.path, *arguments])
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["end"] == 1
        return result.stderr

    assert run().rstrip().endswith("of free memory")
    assert "in this process" not in run("--runner", "local")
    monkeypatch.setattr(choosing, "available_memory", lambda: 1)
    monkeypatch.setattr(choosing, "find_spec", lambda _: None)
    assert run().startswith("warning: the input needs about 36 bytes of 1 bytes of free memory, but it is read in this")
