"""Definitions with deadlines: what events or the clock detect there are events of the statements below."""

from __future__ import annotations

import datetime
import random
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.language.formula import Strategy
from cerflow.language.select import Projection, ProjectionKind
from cerflow.look.studying.steps import PassedDeadline
from support.generators.limits import number, places
from support.runners import EXAMPLES, bag, complex_events

#: No two matches have the same start, as the order of such is not defined.
DEFINITIONS = (
    "SELECT a.v AS v, a.k AS k FROM s1 WHERE A AS a NOT FOLLOWED BY B FOR 2 MILLISECONDS",
    "SELECT a.v AS v FROM s1, s2 WHERE A AS a NOT FOLLOWED BY (B AS b FILTER b.v = a.v) FOR 3 MILLISECONDS "
    "PARTITION BY k",
    "SELECT a.v AS v, time(a) AS w WHERE EVENT AS a NOT FOLLOWED BY A FOR 1 MILLISECONDS PARTITION BY k",
    "SELECT a.v AS v WHERE (A AS a NOT FOLLOWED BY B FOR 2 MILLISECONDS) ; B PARTITION BY k WITHIN 4 MILLISECONDS",
    "SELECT MAX a.v AS v, a.k AS k WHERE A AS a NOT FOLLOWED BY B FOR 3 MILLISECONDS CONSUME BY PARTITION",
    "SELECT a.v AS v FROM s2 WHERE A AS a NOT FOLLOWED BY B FOR 2 EVENTS",
    "SELECT b.v AS v FROM s1 WHERE A : B AS b",
)
SECONDS = (
    "SELECT x.v AS v FROM d WHERE d AS x NOT FOLLOWED BY d FOR 2 MILLISECONDS",
    "SELECT x.v AS v FROM s1, d WHERE d AS x NOT FOLLOWED BY s1>A FOR 3 MILLISECONDS",
    "SELECT x.v AS v, position(x) AS w FROM s1, d WHERE s1>B ; d AS x WITHIN 3 EVENTS CONSUME BY ANY",
    "SELECT a.v AS v FROM s2 WHERE A AS a NOT FOLLOWED BY B FOR 1 MILLISECONDS",
    "SELECT x.v AS v FROM d WHERE d : d AS x",
)
LASTS = (
    "SELECT * FROM e WHERE e+ WITHIN 6 MILLISECONDS",
    "SELECT * FROM d, e WHERE d>EVENT AS x ; e>EVENT AS y WITHIN 5 EVENTS",
    "SELECT * FROM d, e, s1 WHERE (d OR e OR s1>A) AS x NOT FOLLOWED BY (d OR e) FOR 2 MILLISECONDS",
    "SELECT x.v AS v, count(z) AS n FROM s1, d, e WHERE d AS x : EVENT+ AS z WITHIN 4 EVENTS",
    "SELECT COUNT(*) AS n FROM d, e WHERE (e AS x NOT FOLLOWED BY d FOR 1 MILLISECONDS) ; e",
    "SELECT LAST * FROM d, s2 WHERE (d OR A) NOT FOLLOWED BY B FOR 3 MILLISECONDS",
    "SELECT * WHERE A : B",
)
COLUMNS = pa.schema(
    [("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("k", pa.int64()), ("s", pa.string())]
)
ROLES: dict[str, Any] = {"time": "t", "stream": "s"}


def program(draw: random.Random) -> cerflow.Program:
    if draw.random() < 0.1:
        return cerflow.parse_program(
            "DEFINE d AS SELECT NONE WHERE A NOT FOLLOWED BY B FOR 2 MILLISECONDS PARTITION BY k;\n"
            "SELECT COUNT(*) AS n FROM d, s1 WHERE d : (d OR s1>B)"
        )
    d, e, last = (draw.choice(some) for some in (DEFINITIONS, SECONDS, LASTS))
    return cerflow.parse_program(f"DEFINE d AS {d};\nDEFINE e AS {e};\n{last}")


def events(draw: random.Random) -> pa.Table:
    time = places(draw)
    rows = []
    for _ in range(draw.randint(1, 8)):
        time += draw.choice([0, 0, 1, 1, 2, 3, 5])
        key, value = draw.choice([0, 0, 1, None]), number(draw, 0, 2)
        rows.append({"type": draw.choice("AAB"), "t": time, "v": value, "k": key, "s": draw.choice(["s1", "s2"])})
    return pa.Table.from_pylist(rows, COLUMNS)


@pytest.mark.parametrize("seed", range(round(250 * EXAMPLES)))
def test_as_defined(seed: int) -> None:
    draw = random.Random(seed)
    some = program(draw)
    roles = ROLES if draw.random() < 0.7 else ROLES | {"forget": "2 milliseconds"}
    for _ in range(3):
        table = events(draw)
        now = table["t"][-1].as_py()
        until = now + draw.randint(0, 8)
        expected = bag(some.match(table, runner="semantics", until=until, **roles).to_pylist())
        assert bag(some.match(table, until=until, **roles).to_pylist()) == expected
        recognizer = some.recognizer(table.schema, **roles)
        found = []
        at = 0
        while at < len(table):
            size = draw.randint(1, 3)
            found += recognizer.push(table.slice(at, size)).to_pylist()
            at = min(at + size, len(table))
            if draw.random() < 0.3:
                recognizer = some.restore(recognizer.snapshot(), table.schema, **roles)
        for time in sorted({draw.randint(now, until), until}):
            found += recognizer.advance(time).to_pylist()
        assert bag(found) == expected
        shown_by_a_clock(some, table, until, draw, roles)


def shown_by_a_clock(
    some: cerflow.Program, table: pa.Table, until: int, draw: random.Random, roles: dict[str, Any]
) -> None:
    """A recogniser whose clock runs finds the same as one that is told every time."""
    told = some.recognizer(table.schema, **roles)
    expected = []
    now = max(table["t"][0].as_py() - 5, 2 - 2**63)
    for k, row in enumerate(table.to_pylist()):
        for time in range(now + 1, row["t"] + 1):
            expected += told.advance(time).to_pylist()
        now = row["t"]
        expected += told.push(table.slice(k, 1)).to_pylist()
    for time in range(now + 1, until + 1):
        expected += told.advance(time).to_pylist()
    running = some.recognizer(table.schema, **roles)
    running.run_clock()
    at = draw.randint(0, len(table))
    found = running.push(table.slice(0, at)).to_pylist()
    running.take_over(running.snapshot())
    found += running.push(table.slice(at)).to_pylist()
    found += running.advance(until).to_pylist()
    assert bag(found) == bag(expected)


@pytest.mark.parametrize("seed", range(round(160 * EXAMPLES)))
def test_their_steps_and_answers(seed: int) -> None:
    """Traces and `why_not` read what the definitions give, also what the clock shows."""
    draw = random.Random(seed)
    some = program(draw)
    tree = some.query.tree
    shows_events = tree.projection == Projection(ProjectionKind.ALL)
    for _ in range(3):
        table = events(draw)
        until = draw.choice([None, table["t"][-1].as_py() + draw.randint(0, 8)])
        rows = some.match(table, until=until, **ROLES).to_pylist()
        trace = some.trace(table, until=until, **ROLES)
        steps = list(trace.steps())
        if not shows_events or any(step.detected >= limits.TRACED_MATCHES for step in steps):
            continue
        found = complex_events(rows)
        if tree.strategy is Strategy.ALL:
            shown = [step.shown_by if isinstance(step, PassedDeadline) else step.event for step in steps]
            assert {(e and e.position, pairs) for e, step in zip(shown, steps) for pairs in step.matches} == found
        expected = {frozenset(p for _, p in pairs) for _, pairs in found}
        every = [chosen for size in (1, 2) for chosen in combinations(range(len(trace)), size)]
        missing = [chosen for chosen in every if frozenset(chosen) not in expected]
        # An answer explains much; a few of each kind tell as much as all.
        matching = [chosen for chosen in every if frozenset(chosen) in expected]
        for chosen in (*matching, *draw.sample(missing, min(5, len(missing)))):
            answer = some.why_not(table, chosen, until=until, **ROLES)
            assert (not answer) == (frozenset(chosen) in expected), chosen


def test_a_definition_detected_by_the_clock_is_an_event_at_its_deadline() -> None:
    some = cerflow.parse_program("""
        DEFINE lost AS SELECT c.user AS who FROM shop WHERE cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES
          PARTITION BY user;
        SELECT a.who AS first, b.who AS second FROM lost WHERE lost AS a : lost AS b WITHIN 10 MINUTES
    """)
    start = datetime.datetime(2024, 3, 15, 10)
    carts = [(0, "ann"), (5, "bob"), (20, "cleo")]
    rows = [{"type": "cart", "at": start + datetime.timedelta(minutes=m), "user": user} for m, user in carts]
    assert some.match(rows, time="at").count() == 0
    (match,) = some.match(rows, time="at", until="2024-03-15T11:00")
    assert (match["first"], match["second"]) == ("ann", "bob")
    assert match["detected_time"] == start + datetime.timedelta(minutes=35)
    recognizer = some.recognizer(pa.Table.from_pylist(rows).schema, time="at")
    assert recognizer.push(rows).count() == 0
    assert recognizer.next_deadline.as_py() == start + datetime.timedelta(minutes=30)
    assert recognizer.advance("2024-03-15T10:34").count() == 0
    with pytest.raises(cerflow.InputError):
        recognizer.advance("soon")
    assert recognizer.advance("2024-03-15T10:35").count() == 1
