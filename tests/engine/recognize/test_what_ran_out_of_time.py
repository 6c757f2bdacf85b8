"""The queries of decision 11: what is missing when time runs out, and how little waits for it."""

import pyarrow as pa
import pytest

import cerflow

EVENTS = [
    {"type": "cart", "t": 0, "user": 1},
    {"type": "pay", "t": 60_000, "user": 1},
    {"type": "cart", "t": 120_000, "user": 2},
    {"type": "look", "t": 600_000, "user": 2},
    {"type": "cart", "t": 700_000, "user": 3},
    {"type": "look", "t": 800_000, "user": 3},
    {"type": "pay", "t": 900_000, "user": 3},
    {"type": "other", "t": 4_000_000, "user": 4},
]


@pytest.mark.parametrize("options", [{}, {"runner": "semantics"}])
@pytest.mark.parametrize(
    ("formula", "users"),
    [
        ("cart AS c NOT FOLLOWED BY pay FOR 30 MINUTES", [2]),
        ("cart AS c NOT FOLLOWED BY (look ; pay) FOR 30 MINUTES", [1, 2]),
        ("(cart AS c ; look AS l) NOT FOLLOWED BY pay FOR 30 MINUTES", [2]),
    ],
)
def test_what_is_missing(formula, users, options):
    query = cerflow.parse(f"SELECT * WHERE {formula} PARTITION BY user")
    assert sorted(match["user"] for match in query.match(EVENTS, time="t", **options)) == users


def test_partial_matches_share_two_configurations():
    events = pa.table({"type": ["A"] + ["B"] * 60})
    recognizer = cerflow.parse("SELECT * WHERE A ; B+ ; C WITHIN 100 EVENTS").recognizer(events.schema)
    assert recognizer.push(events).count() == 0
    assert (recognizer.live["configurations"], recognizer.live["nodes"]) == (2, 122)
    # What waits for C are the matches of the formula without it.
    assert cerflow.parse("SELECT * WHERE A ; B+ WITHIN 100 EVENTS").match(events).count() == 2**60 - 1
