"""What the data source finds, plans and refuses, before any task runs."""

import json
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import cerflow
from cerflow.base.errors import BadRecordError, InputError, QueryError, QuerySyntaxError, UnsupportedQueryError
from cerflow.spark import CerflowSource
from cerflow.spark.frames.schemas import refuse_foreign
from cerflow.spark.source import row_groups, task
from cerflow.spark.source.row_groups import KeyShare
from support.spark.parquet_streams import on_many_cores, planned, recognised, write
from support.spark.results import rows_in_a_process

QUERY = "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 10 EVENTS"
KEYED = "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 5 MILLISECONDS"


def ticks(count=200, **columns):
    rows = {
        "type": ["AB"[n % 2] for n in range(count)],
        "t": list(range(count)),
        "v": [n * 7 % 13 for n in range(count)],
        "k": [n % 3 for n in range(count)],
    }
    return pa.table(rows | columns)


def rows(table):
    return sorted(map(str, table.to_pylist()))


def assert_exact(query, path, table, **options):
    local = {
        "type": options.get("type", "type"),
        "time": options.get("time"),
        "on_bad_record": options.get("onBadRecord", "fail"),
    }
    expected = cerflow.parse(query).match(table, positions=bool(options.get("positions")), **local).to_arrow()
    found = recognised(query, path, **options)
    assert expected.num_rows > 0
    assert rows(found) == rows(expected)


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_a_directory_a_pattern_and_a_list(tmp_path, monkeypatch):
    on_many_cores(monkeypatch)
    table = ticks()
    write(tmp_path, table, [[10] * 5, [10] * 10, [10] * 5])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-000.parquet.crc").write_bytes(b"no Parquet")
    files = sorted(map(str, tmp_path.glob("*.parquet")))
    whole = tmp_path.parent / f"{tmp_path.name}.parquet"
    pq.write_table(table, whole, row_group_size=10)
    for path in (tmp_path, f"{tmp_path}/*.parquet", f"file://{tmp_path}", f"file://{tmp_path}/part-*", whole):
        assert_exact(KEYED, path, table, time="t", sliceRows=20)
        assert len(planned(KEYED, path, time="t", sliceRows=20).tasks) > 4
    assert_exact(KEYED, None, table, time="t", paths=json.dumps(files))
    # Without a time the order of the files counts, and nothing else.
    turned = pa.concat_tables([pq.read_table(file) for file in reversed(files)])
    assert_exact(QUERY, None, turned, paths=json.dumps(files[::-1]), sliceRows=20, positions=True)


def test_directories_of_hive_are_columns(tmp_path):
    table = ticks(60)
    parts = []
    for day, name in enumerate(("2024-03-01", "2024-03-02", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"day={name}" / f"hour={day}"
        folder.mkdir(parents=True)
        some = table.slice(20 * day, 20)
        pq.write_table(some, folder / "events.parquet", row_group_size=7)
        value = None if name.startswith("__") else date.fromisoformat(name)
        days = pa.array([value] * 20, pa.date32())
        parts.append(some.append_column("day", days).append_column("hour", pa.array([day] * 20, pa.int64())))
    query = "SELECT x.day AS day, y.v + y.hour AS late WHERE A AS x ; B AS y FILTER x.hour < 2 PARTITION BY hour"
    assert_exact(f"{query} WITHIN 3 MILLISECONDS", tmp_path, pa.concat_tables(parts), time="t")


@pytest.mark.parametrize("positions", [{}, {"positions": "true"}])
def test_files_without_types(tmp_path, monkeypatch, positions):
    on_many_cores(monkeypatch)
    table = ticks().drop_columns("type")
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    given = {"time": "t", **positions}
    kinds = "DEFINE low AS v < 3, high AS v > 9 "
    assert_exact(kinds + "SELECT * WHERE low AS x ; high AS y WITHIN 5 MILLISECONDS", tmp_path, table, **given)
    assert_exact("SELECT x WHERE EVENT AS x ; EVENT PARTITION BY k WITHIN 5 EVENTS", tmp_path, table, **given)
    with pytest.raises(QueryError, match="'low' is named as the type of an event, but the events have no types"):
        recognised("SELECT * WHERE low", tmp_path, time="t")


@pytest.mark.parametrize(("name", "codes"), [("type", [4624, 4625, 4634]), ("code", [1, 2, 3]), ("ok", [True, False])])
def test_types_that_are_integers_or_booleans(tmp_path, monkeypatch, name, codes):
    on_many_cores(monkeypatch)
    values = [codes[k % len(codes)] for k in range(200)]
    table = ticks(200).drop_columns("type").append_column(name, pa.array(values))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    first, second = (f'"{str(code).lower() if isinstance(code, bool) else code}"' for code in codes[:2])
    given = {"time": "t", "type": name}
    assert_exact(f"SELECT * WHERE {first} AS x ; {second} AS y WITHIN 5 MILLISECONDS", tmp_path, table, **given)
    assert_exact(
        f"SELECT x.{name} AS c WHERE {first} AS x ; {second} PARTITION BY v WITHIN 5 EVENTS", tmp_path, table, **given
    )
    assert_exact(f"SELECT * WHERE EVENT AS x ; {second} PARTITION BY type WITHIN 9 EVENTS", tmp_path, table, **given)
    lacking = pa.table({name: pa.array([codes[0], None]), "t": [1, 2]})
    pq.write_table(lacking, tmp_path / "lacking.parquet")
    with pytest.raises(BadRecordError, match=f"no event type in '{name}'"):
        recognised(f"SELECT * WHERE {first}", tmp_path / "lacking.parquet", **given)
    if isinstance(codes[0], bool):
        return
    pq.write_table(pa.table({name: [0.5], "t": [1]}), tmp_path / "fractions.parquet")
    with pytest.raises(InputError, match=f"the type column '{name}' must hold text"):
        recognised(f"SELECT * WHERE {first}", tmp_path / "fractions.parquet", **given)
    # The value may also be that of a directory.
    folder = tmp_path / "folders" / f"{name}={codes[0]}"
    folder.mkdir(parents=True)
    pq.write_table(table.drop_columns(name), folder / "t.parquet")
    alike = table.set_column(table.column_names.index(name), name, pa.array([codes[0]] * 200))
    assert_exact(f"SELECT * WHERE {first} AS x ; {first} AS y WITHIN 3 EVENTS", tmp_path / "folders", alike, **given)


def test_files_with_other_columns(tmp_path):
    first, second = ticks(40), ticks(80).slice(40).drop_columns(["v"]).append_column("s", pa.array(["p", None] * 20))
    pq.write_table(first, tmp_path / "1.parquet")
    pq.write_table(second, tmp_path / "2.parquet")
    whole = pa.concat_tables([first, second], promote_options="default")
    assert_exact("SELECT * WHERE A AS x ; B AS y WITHIN 5 MILLISECONDS", tmp_path, whole, time="t")
    pq.write_table(second.set_column(1, "k", pa.array(["k"] * 40)), tmp_path / "3.parquet")
    with pytest.raises(InputError, match="do not have the same columns"):
        planned(KEYED, tmp_path, time="t")


def test_types_that_spark_does_not_have(tmp_path):
    numbers = list(range(60))
    table = ticks(
        60,
        u8=pa.array(numbers, pa.uint8()),
        u32=pa.array(numbers, pa.uint32()),
        u64=pa.array([2**64 - 1 - n for n in numbers], pa.uint64()),
        s=pa.array([f"s{n}" for n in numbers], pa.large_string()),
        d=pa.array([f"d{n % 3}" for n in numbers]).dictionary_encode(),
        b=pa.array([b"ab"] * 60, pa.binary(2)),
        f=pa.array([float(n) for n in numbers], pa.float32()),
        m=pa.array(numbers, pa.timestamp("ns", "Europe/Berlin")),
        z=pa.array([[n] for n in numbers], pa.list_(pa.uint16())),
    )
    pq.write_table(table, tmp_path / "1.parquet", row_group_size=9)
    found = recognised("SELECT * WHERE A AS x ; B AS y WITHIN 2 MILLISECONDS", tmp_path, time="t")
    assert found.num_rows == 30
    first = found.column("events")[0].as_py()[1]
    assert (first["u8"], first["u32"], first["u64"], first["z"]) == (1, 1, 2**64 - 2, [1])
    assert (first["s"], first["d"], first["b"], first["f"]) == ("s1", "d1", b"ab", 1.0)
    with pytest.raises(InputError, match="the column 'x' has type month_day_nano_interval"):
        refuse_foreign(pa.schema([("x", pa.month_day_nano_interval())]), ["x"])


def test_a_decimal_that_spark_does_not_have_may_be_left_out(tmp_path):
    write(tmp_path, ticks(v=pa.array(range(200), pa.decimal256(50, 2))))
    with pytest.raises(InputError, match=r"'v' has type decimal256\(50, 2\), which Spark does not have; leave it out"):
        planned("SELECT * WHERE A", tmp_path, time="t")
    assert planned("SELECT x[t] WHERE A AS x", tmp_path, time="t").rows == 200


def test_a_file_that_has_changed(tmp_path):
    write(tmp_path, ticks())
    plan = planned(KEYED, tmp_path, time="t")
    write(tmp_path, ticks(100))
    with pytest.raises(InputError, match="has changed since it was planned"):
        list(task.matches_of(plan.work, plan.tasks[0]))


def test_a_value_that_cannot_be_held_is_shown_with_its_event(tmp_path, monkeypatch):
    on_many_cores(monkeypatch)
    values = pa.array([2**64 - 1 if n == 150 else n for n in range(200)], pa.uint64())
    write(tmp_path, ticks(v=values), [[10] * 20])
    query = "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 10 MILLISECONDS"
    assert len(planned(query, tmp_path, time="t", sliceRows=20).tasks) > 4
    with pytest.raises(BadRecordError, match=r"row \{type: 'A', t: 150, v: 18446744073709551615, k: 0\}: the value"):
        recognised(query, tmp_path, time="t", sliceRows=20)


# --- slices ----------------------------------------------------------------------------------------------------------


def test_row_groups_that_are_clustered_are_cut_where_they_begin(tmp_path, monkeypatch):
    on_many_cores(monkeypatch, 4)
    write(tmp_path, ticks(1000), [[50] * 20])
    plan = planned(KEYED, tmp_path, time="t", sliceRows=100)
    starts = [some.slice.start for some in plan.tasks]
    # Two for each core; of the row group before a slice, the events less than a window before it are needed.
    assert len(starts) == 8
    assert starts[0] < 0
    assert all(start % 50 == 0 for start in starts[1:])
    assert sum(len(some.slice.groups) for some in plan.tasks) == 20 + 7
    assert "8 tasks read slices of 1,000 events" in plan.explanation
    assert "no match depends on events further back than the window" in plan.explanation


def test_a_window_that_is_long_makes_fewer_slices(tmp_path, monkeypatch):
    on_many_cores(monkeypatch, 2)
    write(tmp_path, ticks(1000), [[10] * 100])
    counts = [
        len(planned(KEYED.replace("5", str(width)), tmp_path, time="t", sliceRows=20).tasks)
        for width in (1, 400, 100_000)
    ]
    assert counts[0] > counts[1] >= counts[2] == 2
    # One core has nothing of reading events twice.
    assert len(planned(KEYED.replace("5", "100000"), tmp_path, time="t", sliceRows=20, cores=1).tasks) == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * WHERE A AS x ; B AS y", "no window bounds"),
        ("SELECT * WHERE A AS x ; B AS y WITHIN 5 MILLISECONDS CONSUME BY ANY", "CONSUME makes every match depend"),
        ("SELECT * WHERE A AS x ; B AS y PARTITION BY k CONSUME BY ANY", "CONSUME makes every match depend"),
        ("SELECT * WHERE A AS x ; B AS y WITHIN 5 [n]", "a window of an attribute is not cut"),
    ],
)
def test_what_cannot_be_cut_is_one_task(tmp_path, monkeypatch, query, reason):
    on_many_cores(monkeypatch)
    table = ticks(n=list(range(200)))
    write(tmp_path, table, [[10] * 20])
    plan = planned(query, tmp_path, time="t", sliceRows=10)
    assert len(plan.tasks) == 1
    assert plan.explanation.startswith("one task reads all 200 events in order: ")
    assert reason in plan.explanation
    assert CerflowSource({"query": query, "path": str(tmp_path), "time": "t"}).explain() == plan.explanation
    assert_exact(query, tmp_path, table, time="t", positions=True)


KEYS = {
    "integers": pa.array([None if n % 7 == 0 else n % 5 - 2 for n in range(200)]),
    "floats": pa.array([(-0.0, 0.0, 1.5, float("nan"), None, -3.0)[n // 2 % 6] for n in range(200)]),
    "texts": pa.array([None if n % 11 == 0 else "abcdé"[n % 5] for n in range(200)]),
    "long texts": pa.array([f"{'x' * 30}{n // 4}" for n in range(200)]),
    "decimals": pa.array([Decimal(n // 2 % 4) / 10 for n in range(200)], pa.decimal128(4, 1)),
    "instants": pa.array([n // 2 % 6 for n in range(200)], pa.timestamp("us", "UTC")),
    "dates": pa.array([date(2024, 1, 1 + n // 2 % 9) for n in range(200)]),
    "Booleans": pa.array([(True, False, None)[n // 2 % 3] for n in range(200)]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("rest", ["PARTITION BY v", "PARTITION BY v, k", "PARTITION BY v WITHIN 6 EVENTS"])
def test_without_a_window_tasks_share_the_keys(tmp_path, monkeypatch, kind, rest):
    on_many_cores(monkeypatch, 3)
    table = ticks(v=KEYS[kind], k=[n // 2 % 3 for n in range(200)])
    mixed = table.take(pa.array([10 * (n // 10) + n * 7 % 10 for n in range(200)]))
    write(tmp_path, mixed, [[10] * 8, [0], [30, 20]])
    query = f"SELECT * WHERE A AS x ; B AS y {rest}"
    plan = planned(query, tmp_path, time="t", sliceRows=20)
    assert len(plan.tasks) == 3
    assert plan.explanation.startswith("3 tasks share 200 events by key")
    assert_exact(query, tmp_path, table, time="t", sliceRows=20)
    # Positions count the events of all keys.
    assert len(planned(query, tmp_path, time="t", sliceRows=20, positions=True).tasks) == 1
    assert len(planned(query, tmp_path, time="t").tasks) == 1


@pytest.mark.parametrize("by_folder", [True, False])
def test_row_groups_without_keys_of_a_task_are_not_read(tmp_path, monkeypatch, by_folder):
    on_many_cores(monkeypatch, 3)
    table = ticks(k=[n // 2 % 8 for n in range(200)])
    for key in range(8):
        rows_of_key = table.filter(pa.compute.equal(table["k"], key))
        folder = tmp_path / (f"k={key}" if by_folder else f"{key}")
        folder.mkdir()
        write(folder, rows_of_key.drop_columns(["k"]) if by_folder else rows_of_key)
    query = "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v PARTITION BY k"
    read, real = [], row_groups.RowGroupReader._read
    monkeypatch.setattr(
        row_groups.RowGroupReader,
        "_read",
        lambda self, group, file, names: read.append((group.file, *names)) or real(self, group, file, names),
    )
    expected = cerflow.parse(query).match(table, time="t")
    found = recognised(query, tmp_path, time="t", sliceRows=20)
    assert found.num_rows == expected.count() > 0
    # All three tasks look at the keys of each file, and one at its times.
    assert sorted(names for names in read if "t" in names) == [(file, "type", "t") for file in range(8)]
    assert sum("k" in names for names in read) == 24


@pytest.mark.parametrize("key", ["[f, k]", "[k, f]"])
def test_a_key_may_be_an_integer_or_a_float(tmp_path, monkeypatch, key):
    on_many_cores(monkeypatch, 4)
    table = ticks(
        f=[float(n // 2 % 4) if n % 3 else None for n in range(200)],
        k=[n // 2 % 4 if n % 5 else None for n in range(200)],
    )
    write(tmp_path, table, [[20] * 10])
    query = f"SELECT * WHERE A AS x ; B AS y PARTITION BY {key}"
    assert len(planned(query, tmp_path, time="t", sliceRows=20).tasks) == 4
    assert_exact(query, tmp_path, table, time="t", sliceRows=20)


def test_the_shares_of_tasks_are_even_and_all_there_is():
    keys = {"texts": pa.array([f"K{n}" for n in range(5000)]), "integers": pa.array(range(0, 50_000, 10))}
    for column in (*keys.values(), keys["integers"].cast(pa.float64())):
        own = np.stack([KeyShare((("k",),), number, 7).own([column]) for number in range(7)])
        assert (own.sum(axis=0) == 1).all()
        assert (abs(own.sum(axis=1) - 5000 / 7) < 150).all()


def test_only_what_is_needed_is_read(tmp_path, monkeypatch):
    on_many_cores(monkeypatch)
    write(tmp_path, ticks(100), [[10] * 10])
    plan = planned("SELECT x[v] WHERE A AS x ; B AS y WITHIN 3 MILLISECONDS", tmp_path, time="t", sliceRows=50)
    assert plan.work.columns.names == ["type", "t", "v"]
    assert pa.types.is_dictionary(plan.work.columns.field("type").type)
    read = []
    pieces = row_groups.RowGroupReader.pieces
    monkeypatch.setattr(
        row_groups.RowGroupReader, "pieces", lambda self, group: read.append(group.index) or pieces(self, group)
    )
    list(task.matches_of(plan.work, plan.tasks[1]))
    # One before its own: the events less than a window before them.
    assert read == [4, 5, 6, 7, 8, 9]


def test_unsorted_files_are_sorted_in_bounded_memory(tmp_path, monkeypatch):
    on_many_cores(monkeypatch, 4)
    table = ticks(400)
    mixed = table.take(pa.array([n * 149 % 400 for n in range(400)]))
    write(tmp_path, mixed, [[20] * 20])
    plan = planned(KEYED, tmp_path, time="t", sliceRows=50)
    assert len(plan.tasks) > 1
    assert_exact(KEYED, tmp_path, mixed, time="t", sliceRows=50, positions=True)
    monkeypatch.setattr("cerflow.base.limits.SOURCE_WAITING_BYTES", 1000)
    with pytest.raises(InputError, match=r"events overlap in 't', too many.*let cerflow\.spark\.match sort them"):
        planned("SELECT * WHERE A AS x ; B AS y", tmp_path, time="t")
    # What is in order needs no room.
    write(tmp_path, table, [[20] * 20])
    assert_exact("SELECT * WHERE A AS x ; B AS y PARTITION BY v", tmp_path, table, time="t")


def test_wrong_statistics_are_noticed(tmp_path, monkeypatch):
    write(tmp_path, ticks(), [[50] * 4])
    bounds = {}

    def lying(statistics, data_type):
        # The third row group claims to be earlier than it is.
        low = statistics.min_raw
        bounds[low] = (low, statistics.max_raw) if low != 100 else (90, 95)
        return bounds[low]

    monkeypatch.setattr("cerflow.files.row_groups.extremes_of", lying)
    with pytest.raises(InputError, match=r"the statistics of 't' in row group 2 of .* are wrong"):
        recognised(KEYED, tmp_path, time="t")


def test_infinite_times_are_not_cut_by(tmp_path):
    table = ticks(200, t=[float("-inf"), *map(float, range(198)), float("inf")])
    write(tmp_path, table, [[50] * 4])
    assert_exact(KEYED, tmp_path, table, time="t", sliceRows=50, positions=True)


# --- bad records -----------------------------------------------------------------------------------------------------


def test_bad_records_are_named_by_their_place(tmp_path):
    table = ticks(40, type=["A", "B"] * 15 + [None] * 10)
    write(tmp_path, table, [[10, 10], [5, 15]])
    with pytest.raises(BadRecordError, match=r"row 10 of '.*part-001\.parquet': no event type in 'type'"):
        recognised(KEYED, tmp_path, time="t")
    assert_exact(KEYED, tmp_path, table, time="t", onBadRecord="skip", positions=True)
    late = ticks(40, t=[*range(20), *[None] * 20])
    write(tmp_path, late, [[10, 10], [20]])
    # Such a row group is seen in its footer.
    with pytest.raises(BadRecordError, match=r"row 0 of '.*part-001\.parquet': no time in 't'"):
        planned(KEYED, tmp_path, time="t")
    assert not planned(KEYED, tmp_path, time="t", onBadRecord="skip").certain


def test_an_attribute_of_a_window_that_decreases(tmp_path):
    write(tmp_path, ticks(20))
    with pytest.raises(BadRecordError, match="decreases"):
        recognised("SELECT * WHERE A AS x ; B AS y WITHIN 5 [v]", tmp_path, time="t")


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"query": "SELECT * WHERE A AS"}, QuerySyntaxError, "line 1, column 20"),
        ({"query": "SELECT * WHERE A AS x FILTER x.w > 1"}, QueryError, r"(?s)line 1, column.*\^"),
        ({"query": "SELECT * WHERE A AS x FILTER odd(x.v)"}, QueryError, "odd"),
        ({"quury": "x"}, InputError, "no option 'quury'; did you mean 'query'"),
        ({"time": "tt"}, InputError, "time column 'tt' is not in the input"),
        ({"sequence": "typ"}, InputError, "did you mean 'type'"),
        ({"positions": "yes"}, InputError, "must be true or false, not 'yes'"),
        ({"onBadRecord": "skp"}, InputError, "must be fail or skip, not 'skp'; did you mean 'skip'"),
        ({"sliceRows": "0"}, InputError, "a number above 0, not '0'"),
        ({"queryFile": "q.ceql"}, InputError, "one of the options"),
        ({"query": None}, InputError, "one of the options"),
        ({"query": None, "queryFile": "/no/such.ceql"}, InputError, "cannot read the query file"),
        ({"language": "sql"}, InputError, "must be ceql or sremo"),
        ({"path": "/no/such/file"}, InputError, "there is no file '/no/such/file'"),
        ({"path": "/no/such/*.parquet"}, InputError, "nothing matches"),
        ({"path": "nowhere://bucket/x"}, InputError, "cannot open 'nowhere://bucket/x'"),
        ({"paths": "1"}, InputError, "a list of texts in JSON"),
        ({"path": None}, InputError, "needs the path"),
        ({"path": __file__}, InputError, "as Parquet"),
        ({"time": None, "sequence": "type"}, InputError, "cannot order events by 'type'"),
    ],
)
def test_what_is_wrong_is_said_before_any_task(tmp_path, options, error, said):
    write(tmp_path, ticks(10))
    given = {"query": QUERY, "path": str(tmp_path), "time": "t"} | options
    source = CerflowSource({name: value for name, value in given.items() if value is not None})
    with pytest.raises(error, match=said):
        source.schema()


def test_predicates_are_left_to_match(tmp_path):
    @cerflow.predicate
    def even(x: int) -> bool:
        return x % 2 == 0

    try:
        write(tmp_path, ticks(10))
        with pytest.raises(UnsupportedQueryError, match=r"cerflow\.spark\.match does"):
            planned("SELECT * WHERE A AS x FILTER even(x.v)", tmp_path, time="t")
    finally:
        cerflow.unregister_predicate("even")


def test_the_query_may_be_in_a_file(tmp_path):
    write(tmp_path, ticks(10))
    for name, text in (("q.ceql", KEYED), ("q.sremo", "[type = 'A'] AS x . [TRUE]* . [type = 'B'] AS y")):
        file = tmp_path / f"_{name}"
        file.write_text(text)
        found = recognised(None, tmp_path, queryFile=file, time="t")
        language = name.split(".")[1]
        assert found.num_rows == cerflow.parse(text, language=language).match(ticks(10), time="t").count()


def test_row_groups_without_anything_to_notice_are_not_read(tmp_path, monkeypatch):
    on_many_cores(monkeypatch)
    kinds = ["A" if n % 100 == 3 else "B" if n % 100 == 5 else "C" for n in range(1000)]
    table = ticks(1000, type=kinds, w=pa.array([float(n) for n in range(1000)]))
    write(tmp_path, table, [[10] * 100])
    read = []
    streamed = row_groups.RowGroupReader._streamed
    monkeypatch.setattr(
        row_groups.RowGroupReader,
        "_streamed",
        lambda self, group, *given: read.append(group.index) or streamed(self, group, *given),
    )
    # Half of it is seen in the footers, by the bounds of w; of the rest, groups of other types are not read in full.
    query = "SELECT * WHERE A AS x ; B AS y FILTER x.w > 500 AND y.w > 500 WITHIN 20 MILLISECONDS"
    plan = planned(query, tmp_path, time="t")
    assert "row groups have no relevant events" in plan.explanation
    assert sum(len(some.slice.groups) for some in plan.tasks) < 60
    assert_exact(query, tmp_path, table, time="t")
    assert sorted(read) == [50, 60, 70, 80, 90]
    assert_exact(query, tmp_path, table, time="t", positions=True)
    # What cannot be used is not overlooked.
    bad = table.set_column(0, "type", pa.array([None if n == 100 else kind for n, kind in enumerate(kinds)]))
    write(tmp_path, bad, [[10] * 100])
    with pytest.raises(BadRecordError, match="row 100 of"):
        recognised(query, tmp_path, time="t")
    assert_exact(query, tmp_path, bad, time="t", onBadRecord="skip")


@pytest.mark.parametrize("query", [QUERY, KEYED])
def test_tasks_do_not_import_pandas(tmp_path, query):
    """See the test of this name in `placing`."""
    table = ticks(t=pa.array(range(200), pa.timestamp("ms")))
    path = write(tmp_path, table, [[50] * 4])
    plan = planned(query, path, time="t")
    (task_of_all,) = plan.tasks
    expected = cerflow.parse(query).match(table, time="t").count()
    assert rows_in_a_process(task.matches_of, plan.work, task_of_all) == expected > 0
