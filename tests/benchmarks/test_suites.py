"""The suites: their queries compile, the engines agree on them, and patterns say the same in all words."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from benchmarks.cases import Case, Peer, Scale, Stream
from benchmarks.engines import Engine, UnavailableError
from benchmarks.peers import CACHE
from benchmarks.peers.core import core_engine
from benchmarks.peers.duckdb_worker import answer as answer_of_duckdb
from benchmarks.peers.esper import esper_engine
from benchmarks.peers.flink import flink_engine
from benchmarks.peers.polars_worker import answer as answer_of_polars
from benchmarks.profiles import profile
from benchmarks.streams import TickFiles, load
from benchmarks.suites import SUITES
from benchmarks.suites.core import RISE
from benchmarks.suites.everyday import QUESTIONS as EVERYDAY
from benchmarks.suites.srt import PATTERNS
from benchmarks.worker import answer

import cerflow
from benchmarks import probes

TICKS = Stream("stocks", {"events": 3000})
SMALL = Scale(TICKS, events=300, most=10_000)
CASES = [case for make in SUITES.values() for case in make(SMALL)]


@pytest.mark.parametrize("suite", SUITES)
def test_queries_fit_their_streams(suite):
    # Queries that differ in their windows alone are one.
    alike = {re.sub(r"WITHIN \d+", "", case.query): case for case in SUITES[suite](SMALL)}
    for case in alike.values():
        events = load(case.stream.description)
        query = cerflow.parse(case.query, language=case.language)
        query.recognizer(events.schema, time=events.time)
        assert answer({"stream": case.stream.description, "columns": case.columns})["seconds"] >= 0


def test_names_of_cases_are_different():
    names = [(case.suite, case.name) for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("suite", SUITES)
def test_small_scale_is_a_part_of_the_whole(suite):
    quick = SUITES[suite](Scale(TICKS, events=100_000, most=1_000_000, quick=True))
    assert 0 < len(quick) < len(SUITES[suite](Scale(TICKS)))


def test_sequences_are_counted_as_by_hand():
    description = {"kind": "stocks", "events": 180}
    pattern = PATTERNS["q"]["q3"]
    window = 23_400_000
    found = answer({"stream": description, "query": pattern.cel(window), "mode": "write"})
    ticks = next(load(description).chunks()).to_pylist()
    rows = [row for row in ticks if row["name"] in ("MSFT", "ORCL", "CSCO", "AMAT")]
    assert found["matches"] == str(sum(_q3(*four, window) for four in combinations(rows, 4)))
    assert found["matches"] != "0"


def _q3(x, y, z, w, window) -> bool:
    names = (x["name"], y["name"], z["name"], w["name"]) == ("MSFT", "ORCL", "CSCO", "AMAT")
    kinds = (x["type"], w["type"]) == ("SELL", "SELL")
    return names and kinds and w["price"] < x["price"] and w["stock_time"] - x["stock_time"] < window


def test_modes_and_layouts_agree():
    query = PATTERNS["kleene"]["kleene3"].cel(240_000)
    numbers = {
        answer({"stream": {**TICKS.description, "layout": layout}, "query": query, "mode": mode})["matches"]
        for layout in ("text", "encoded")
        for mode in ("count", "write")
    }
    assert len(numbers) == 1
    assert numbers != {"0"}


def test_forms_and_threads_agree():
    case = next(case for case in SUITES["large"](SMALL) if "structs" in case.modes)
    query = case.query.replace("WITHIN 10000", "WITHIN 240000")
    stream = {**TICKS.description, "layout": "encoded"}
    found = {mode: answer({"stream": stream, "query": query, "mode": mode}) for mode in case.modes}
    assert len({reply["matches"] for reply in found.values()}) == 1
    assert found["count"]["matches"] != "0"
    assert found["structs"]["gather"] > 0


def test_detections_are_counted_apart():
    """As many as there are events that detect a match, in either layout."""
    query = PATTERNS["kleene"]["kleene3"].cel(240_000)
    events = next(load(TICKS.description).chunks())
    expected = len({row["detected_at"] for row in cerflow.parse(query).match(events, time="stock_time")})
    for layout in ("text", "encoded"):
        for mode in ("detect", "aggregate", "first", "sample"):
            found = answer({"stream": {**TICKS.description, "layout": layout}, "query": query, "mode": mode})
            assert found["matches"] == str(expected)


def test_streams_are_the_same_in_every_process_and_layout():
    description = {"kind": "synthetic", "events": 50, "types": "A,B,C", "last": "C", "weights": "1,1,0", "values": 9}
    texts, codes = (next(load({**description, "layout": x}).chunks()) for x in ("text", "encoded"))
    assert texts.to_pylist() == codes.to_pylist()
    assert [i for i, kind in enumerate(texts.column("type").to_pylist()) if kind == "C"] == [49]


def test_patterns_in_the_words_of_flink():
    words = PATTERNS["nested"]["nested4"].flink()
    assert words[3:4] + words[7:] == ["(", "z0", "BUY", "name=QQQ", "+", ")+", *words[-3:]]
    assert words[-1] == "name=MSFT&price<x0.price"


def _peer(make, tmp_path: Path) -> Engine:
    try:
        return make(CACHE, tmp_path, TickFiles(tmp_path), fetch=False)
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
def test_core_finds_as_many(tmp_path):
    engine = _peer(core_engine, tmp_path)
    chosen = [case for case in SUITES["core"](SMALL) if not case.name.startswith(("seq12", "seq24", "rise3"))]
    # The generated ticks are fewer in ten seconds than the recorded ones.
    longer = [_in_longer_window(case) for case in chosen if "matches" in case.tags]
    _agree(engine, longer)


@pytest.mark.slow
def test_core_finds_a_match_of_as_many_events_in_windows(tmp_path):
    engine = _peer(core_engine, tmp_path)
    cases = [case for case in SUITES["cel"](Scale(TICKS, events=2000)) if "window of" in case.name and case.peers]
    assert len(cases) == 48
    _agree(engine, cases)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "STRICT"])
def test_core_gives_all_matches_with_every_strategy(tmp_path, strategy):
    """Where it does not, the figures of strategies need it as a peer."""
    engine = _peer(core_engine, tmp_path)
    stream = Stream("synthetic", {"events": 40, "types": "A,B,C"})
    asked = {word: f"SELECT {word} * FROM S WHERE (A AS x)+ ; B AS y ; C AS z" for word in ("ALL", strategy)}
    found = {}
    try:
        for word, text in asked.items():
            case = Case("cel", "", text, stream, (), peers=(Peer("CORE", {"query": text}),))
            found[word] = engine.worker.ask(engine.line(case, "write", 20), 30)["matches"]
    finally:
        engine.stop()
    assert found["ALL"] == found[strategy] != "0"


def _in_longer_window(case: Case) -> Case:
    query = case.query.replace("WITHIN 10000", "WITHIN 240000")
    return replace(case, query=query, peers=(Peer("CORE", {"query": query}),))


@pytest.mark.long
@pytest.mark.slow
def test_flink_finds_as_many(tmp_path):
    engine = _peer(flink_engine, tmp_path)
    # Of nested iterations it counts more matches than there are by definition.
    patterns = [p for kind in ("seq", "kleene", "q") for name, p in PATTERNS[kind].items() if name[-1] in "345"]
    _agree(engine, [_question(pattern, window) for pattern in patterns for window in (20_000, 120_000)])


@pytest.mark.long
@pytest.mark.slow
def test_flink_finds_as_many_in_homes_and_trips(tmp_path):
    engine = _peer(flink_engine, tmp_path)
    asked = [case for case in SUITES["srt"](Scale(TICKS, events=30_000)) if case.stream.kind != "stocks" and case.peers]
    _agree(engine, [case for case in asked if re.search(r"homes: seq[36], 5 s|taxis: seq[36], 100 s", case.name)])


def _question(pattern, window: int) -> Case:
    peer = Peer("FlinkCEP", {"window": window, "pattern": pattern.flink()})
    return Case("srt", "", pattern.cel(window), TICKS, (), peers=(peer,))


def _agree(engine: Engine, cases: list[Case]) -> None:
    total = 0
    try:
        for case in cases:
            theirs = engine.worker.ask(engine.line(case, "write", 20), 30)
            request = {"stream": case.stream.description, "query": case.query, "language": case.language}
            ours = answer({**request, "mode": "count"})
            assert str(theirs.get("matches", theirs)) == ours["matches"], case.query
            total += int(ours["matches"])
    finally:
        engine.stop()
    assert total > 0


@pytest.mark.parametrize("layout", ["text", "encoded"])
@pytest.mark.parametrize(("engine", "ask"), [("Polars", answer_of_polars), ("DuckDB", answer_of_duckdb)])
def test_libraries_find_as_many(engine, ask, layout):
    found = 0
    for case in _asked(engine):
        if layout in case.layouts:
            stream = {**case.stream.description, "layout": layout}
            request = {"stream": stream, "query": case.query, "language": case.language, "mode": "count"}
            theirs = ask({**case.request(engine), "stream": stream})
            assert theirs["matches"] == answer(request)["matches"], case.name
            found += theirs["matches"] != "0"
    assert found >= 5


@pytest.mark.long
@pytest.mark.slow
def test_esper_finds_as_many(tmp_path):
    engine = _peer(esper_engine, tmp_path)
    _agree(engine, [case for case in _asked("Esper") if "0000 ms" not in case.name])


@pytest.mark.long
@pytest.mark.slow
def test_esper_finds_as_many_where_matches_are_consumed(tmp_path):
    engine = _peer(esper_engine, tmp_path)
    cases = [case for case in SUITES["cel"](Scale(TICKS, events=40)) if case.name.startswith("consume")]
    assert len(cases) == 6
    _agree(engine, cases)


#: Enough for turns, and read again: another engine has to continue the time in the same way.
MORE = Stream("stocks", {"events": 20_000})
TWICE = Stream("stocks", {"events": 20_000, "times": 2})


def _asked(engine: str) -> list[Case]:
    cases = [case for suite in ("core", "dataframes") for case in SUITES[suite](Scale(MORE)) if case.peer(engine)]
    return [replace(case, stream=TWICE) for case in cases]


#: Matches in the recorded ticks, by milliseconds.
RISES = {5000: 39_192, 30_000: 1_443_794, 120_000: 17_157_351}


@pytest.mark.parametrize("name", EVERYDAY)
def test_polars_and_duckdb_find_as_many_every_day(name):
    (case,) = (c for c in SUITES["everyday"](Scale(TICKS, events=100_000, quick=True)) if c.name == f"{name}, text")
    request = {"stream": case.stream.description, "query": case.query, "language": case.language, "mode": "count"}
    found = answer(request)["matches"]
    assert found == answer_of_polars(case.request("Polars"))["matches"]
    if case.peer("DuckDB"):
        assert found == answer_of_duckdb(case.request("DuckDB"))["matches"]
    assert found != "0"


@pytest.mark.parametrize("window", RISES)
def test_prices_rise_as_often_as_is_known(window):
    ticks = Path(__file__).parents[3] / "shared" / "data" / "stocks.csv.gz"
    if not ticks.exists():
        pytest.skip(f"the stock data {ticks.name} is not beside the repository")
    request = {"stream": {"kind": "stocks", "path": str(ticks)}, "query": RISE.cel(window), "mode": "count"}
    assert answer(request)["matches"] == str(RISES[window])


def test_stress_is_counted_as_by_dynamic_programming():
    for case in SUITES["cel"](SMALL):
        if case.name.startswith("stress") and case.modes == ("count",):
            steps = "ABC" if "Q1" in case.name else "ABCD"
            kinds = next(load(case.stream.description).chunks()).column("type").to_pylist()
            found = answer({"stream": case.stream.description, "query": case.query, "mode": "count"})
            assert found["matches"] == str(_sequences(kinds, steps))


def _sequences(kinds, steps) -> int:
    """How many increasing tuples of positions have these types."""
    ways = [1] + [0] * len(steps)
    for kind in kinds:
        for number in range(len(steps), 0, -1):
            if kind == steps[number - 1]:
                ways[number] += ways[number - 1]
    return ways[-1]


def test_probes_measure_something():
    queries = [PATTERNS["seq"][name].cel(500) for name in ("seq3", "seq6")]
    description = json.dumps({"kind": "stocks", "events": 50})
    assert len(probes.compiling(description, *queries)["seconds"]) == 2
    assert 0 < probes.push(queries[0], description)["median"] < 10
    assert probes.batches(queries[0], description, "10")["beyond"] < 10
    assert probes.first_match("SELECT * WHERE A AS a ; B AS b WITHIN 2 EVENTS")["found"] == 1


def test_a_profile_names_what_took_time():
    case = next(case for case in SUITES["cel"](SMALL) if case.name.startswith("consume"))
    functions = {name for _, _, name in profile(case, "write").stats}
    assert "push" in functions
