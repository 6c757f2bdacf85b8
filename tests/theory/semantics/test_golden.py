import pytest

from cerflow.base.events import Stream, support
from cerflow.language.parser import parse_query, parse_sremo
from cerflow.theory.semantics.queries import evaluate
from cerflow.theory.semantics.sremo import sremo_match_string, sremo_matches
from support.golden import (
    CASES,
    E1,
    LABELLED_CASES,
    LAST_B,
    SEPARATION_4_4,
    SEPARATION_4_6,
    SREMO_CASES,
    TRADES,
    Case,
    LabelledCase,
    rows,
    separation_4_4,
    separation_4_6,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_query(case: Case):
    matches = evaluate(parse_query(case.query), Stream.from_dicts(case.stream))
    assert {(m.detected_at, m.positions) for m in matches} == case.expected


@pytest.mark.parametrize("case", LABELLED_CASES, ids=lambda case: case.name)
def test_query_with_labels(case: LabelledCase):
    matches = evaluate(parse_query(case.query), Stream.from_dicts(case.stream))
    assert {(m.detected_at, m.complex_event) for m in matches} == case.expected
    assert len(matches) == len(case.expected)


@pytest.mark.parametrize("case", SREMO_CASES, ids=lambda case: case.name)
def test_expression(case: Case):
    matches = sremo_matches(parse_sremo(case.query), Stream.from_dicts(case.stream))
    assert {(n, support(c)) for n, c in matches} == case.expected


@pytest.mark.parametrize("n", [2, 3])
def test_separation_of_theorem_4_4(n):
    everything = frozenset(range(2 * n))
    query = parse_query(SEPARATION_4_4)
    assert everything in {m.positions for m in evaluate(query, Stream.from_dicts(separation_4_4(n)))}
    assert everything not in {m.positions for m in evaluate(query, Stream.from_dicts(separation_4_4(n, spoilt=True)))}


@pytest.mark.parametrize("n", [2, 4, 6])
def test_separation_of_theorem_4_6(n):
    stream, spoilt = separation_4_6(n), separation_4_6(n, spoilt=True)
    everything = frozenset(range(len(stream)))
    query = parse_query(SEPARATION_4_6)
    assert everything in {m.positions for m in evaluate(query, Stream.from_dicts(stream))}
    assert everything not in {m.positions for m in evaluate(query, Stream.from_dicts(spoilt))}


def test_matches_of_prefixes_as_strings():
    expression = parse_sremo(E1)
    found = {
        k: {support(c) for c in sremo_match_string(expression, Stream.from_dicts(TRADES[:k]))} for k in range(1, 7)
    }
    assert found == {1: set(), 2: set(), 3: set(), 4: {frozenset({0, 3})}, 5: {frozenset({0, 4})}, 6: set()}


def test_register_is_compared_with_the_last_event_only():
    expression = parse_sremo(LAST_B)
    good, bad = rows("BBS", id=[7, 1, 1]), rows("BBS", id=[1, 7, 1])
    assert {support(c) for c in sremo_match_string(expression, Stream.from_dicts(good))} == {frozenset({0, 1, 2})}
    assert sremo_match_string(expression, Stream.from_dicts(bad)) == frozenset()


@pytest.mark.parametrize("m", range(1, 7))
def test_m_events_before_one_give_m_matches(m):
    query = parse_query("SELECT * WHERE (T AS x ; H AS y) FILTER x.id = y.id")
    stream = rows("T" * m + "H", id=[1] * (m + 1))
    assert len(evaluate(query, Stream.from_dicts(stream))) == m


def test_rising_humidity_has_26_matches():
    case = LABELLED_CASES[0]
    assert len(case.expected) == 26
    assert not [m for m in evaluate(parse_query(case.query), Stream.from_dicts(case.stream)) if m.detected_at < 9]


@pytest.mark.parametrize(
    ("word", "accepted"),
    [
        ("B1 S2", False),
        ("B1 B3 S2", False),
        ("B2 B3 S2", True),
        ("B3 B2 S2", True),
        ("B1 B2 B3 S2", True),
        ("B1 B4 B3 S2", False),
    ],
)
def test_strings_of_figure_4(word, accepted):
    events = Stream.from_dicts([{"type": w[0], "id": int(w[1])} for w in word.split()])
    expression = parse_sremo("[TRUE]* . [type = 'B'] MARK INTO r . [TRUE]* . [type = 'S' AND id = r.id] MARK")
    assert bool(sremo_match_string(expression, events)) is accepted


@pytest.mark.parametrize(("word", "accepted"), [("aba", True), ("abc", False), ("aab", False), ("aa", True)])
def test_strings_of_figure_12(word, accepted):
    expression = parse_sremo("[TRUE]* . [TRUE] MARK INTO r . [TRUE]* . [type = r.type] MARK")
    assert bool(sremo_match_string(expression, Stream.from_dicts(rows(word)))) is accepted
