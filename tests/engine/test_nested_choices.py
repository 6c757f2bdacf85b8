"""NEXT, LAST and MAX inside formulas whose conditions relate events: what is chosen, and what it costs."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import UnsupportedQueryError
from support.conformance import assert_conforms
from support.runners import ENGINE_RUNNERS, bag, examples, one_batch, restored_at_every_event, semantics

SCHEMA = pa.schema({"type": pa.string(), "s": pa.string(), "w": pa.float64(), **dict.fromkeys("tnvk", pa.int64())})
COMPARISONS = ("<", "<", "<=", ">", ">=", "=", "!=")
WINDOWS = ("EVENTS", "MILLISECONDS", "[n]")


def part(rng):
    """A formula with conditions on two or three labels; with ``d.v`` it needs a label from outside."""
    labels = rng.sample(["x", "y", "z"], rng.choice((2, 2, 3)))
    shapes = ("({} AS {})", "({} AS {})", "({} AS {})", "({} AS {})+", "({0} AS {1} OR C AS {1})", "(({} AS {}) ; B)")
    steps = [rng.choice(shapes).format(rng.choice("AABBC"), label) for label in labels]
    body = rng.choice((" ; ", " ; ", " : ")).join(steps) + rng.choice(("", "", " ; C", " : B", " ; C+"))
    atoms = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        a, b = rng.sample(labels, 2)
        one, other = rng.choice(("vv", "vv", "ww", "ss", "vw"))
        atoms.append(rng.choice((f"{a}.{one} {rng.choice(COMPARISONS)} {b}.{other}",) * 4 + (f"{a}.v + {b}.v < 4",)))
    if rng.random() < 0.2:
        atoms.append(f"{labels[0]}.v > d.v")
    text = f"({body}) FILTER {rng.choice((' AND ', ' AND ', ' OR ')).join(atoms)}"
    return f"({text}) WITHIN {rng.randint(3, 7)} {rng.choice(WINDOWS)}" if rng.random() < 0.2 else text


def query(rng):
    """A query with a choice inside its formula."""
    text = f"{rng.choice(('NEXT', 'NEXT', 'LAST', 'MAX'))}({part(rng)})"
    if "d.v" in text:
        text = rng.choice(("A AS d ; {}", "{} ; A AS d")).format(text)
    elif rng.random() < 0.4:
        text = rng.choice(("A ; ", "B AS d ; ", "A+ ; ")) + text
    text += rng.choice(("", "", " ; C", " ; B", " : C"))
    text = rng.choice(("{}",) * 6 + ("({})+", "({}) OR (A ; C)", "({}) UNLESS (C ; A)", "LAST({})")).format(text)
    text += rng.choice(("", "", "", " PARTITION BY k"))
    if rng.random() < 0.4:
        text += f" WITHIN {rng.randint(3, 9)} {rng.choice(WINDOWS[:2])}"
    return cerflow.parse(f"SELECT * WHERE {text}")


def events(rng):
    """Events whose values meet often; some are missing or no numbers."""
    rows = []
    t = n = 0
    for _ in range(rng.randint(6, 10)):
        t, n = t + rng.choice((0, 1, 1, 2)), n + rng.choice((0, 1, 1, 2))
        values = {
            "v": rng.randint(0, 4),
            "w": rng.choice((0.0, -0.0, 0.5, 1.0, 2.0, float("nan"))),
            "s": rng.choice("abc"),
        }
        known = {name: value for name, value in values.items() if rng.random() > 0.05}
        rows.append({"type": rng.choice("AABBC"), "t": t, "n": n, "k": rng.randint(0, 1), **known})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@examples(25)
@given(st.randoms(use_true_random=False))
def test_random_choices_inside_formulas(rng):
    chosen = query(rng)
    for _ in range(2):
        table = events(rng)
        wanted = bag(semantics(chosen, table, time="t"))
        try:
            assert bag(one_batch(chosen, table, time="t")) == wanted
        except UnsupportedQueryError:
            return
        if rng.random() < 0.2:
            assert bag(restored_at_every_event(chosen, table, time="t")) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "NEXT((A AS x ; B AS y ; C) FILTER x.v < y.v) ; C WITHIN 12 EVENTS",
        "D ; NEXT((A AS x ; B AS y) FILTER x.v >= y.v) ; C PARTITION BY k",
        "LAST((A AS x ; B AS y ; C) FILTER x.w < y.w) ; C WITHIN 9 EVENTS",
        "D ; LAST((A AS x ; B AS y) FILTER x.v = y.v AND x.w <= y.w) ; C",
        "MAX(((A AS x)+ ; B AS y) FILTER x.v <= y.v) ; C WITHIN 7 EVENTS",
    ],
)
def test_longer_streams(text):
    generator = np.random.default_rng(len(text))
    size = 24
    table = pa.table(
        {
            "type": np.array(list("ABCD"))[generator.choice(4, size, p=(0.35, 0.3, 0.2, 0.15))],
            "t": np.arange(size),
            "v": pa.array([None if k % 7 == 3 else int(v) for k, v in enumerate(generator.integers(0, 9, size))]),
            "w": np.where(np.arange(size) % 8 == 5, np.nan, generator.normal(size=size)),
            "k": generator.integers(0, 2, size),
        }
    )
    assert_conforms(cerflow.parse(f"SELECT * WHERE {text}"), table, ENGINE_RUNNERS)


def test_rivals_are_compared_with_an_event_that_precedes_them():
    # The condition on d is asked of the rows of rivals as well, though nothing else is asked with them.
    table = pa.table({"type": list("ABBBC"), "v": [1, 5, 3, 2, 0]})
    chosen = cerflow.parse("SELECT * WHERE A AS d ; NEXT(((B AS x)+ ; B AS y) FILTER x.v > y.v AND x.v > d.v) ; C")
    assert bag(one_batch(chosen, table)) == bag(semantics(chosen, table))
    assert len(one_batch(chosen, table)) == 2


@pytest.mark.parametrize(
    "formula",
    [
        "NEXT((A AS x ; B AS y ; C) FILTER x.v < y.v) ; C",
        "NEXT((A AS x ; B AS y ; C) FILTER x.k = y.k) ; C",
        "NEXT((A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND y.v < z.v) ; C",
        "D ; NEXT((A AS x ; B AS y ; C) FILTER x.v > y.v) ; C",
        "LAST((A AS x ; B AS y ; C) FILTER x.v < y.v) ; C",
        "D ; LAST((A AS x ; B AS y ; C) FILTER x.v < y.v) ; C",
    ],
)
def test_the_work_does_not_grow_with_the_window(formula):
    size = 6_000
    generator = np.random.default_rng(5)
    types = np.array(list("ABCD"))[generator.integers(0, 4, size)]
    values, keys = generator.integers(0, 10**6, size), generator.integers(0, 50, size)
    table = pa.table({"type": types, "v": values, "k": keys})
    for window in (30, 3_000):
        recognizer = cerflow.parse(f"SELECT * WHERE {formula} WITHIN {window} EVENTS").recognizer(table.schema)
        recognizer.push(table)
        assert recognizer.live["configurations"] <= 150
        assert recognizer.live["visited"] <= 40 * size


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX"])
def test_rows_with_windows_wait_for_a_later_event(strategy):
    part = "((B AS z ; A AS y) FILTER y.v < z.w OR z.v != y.v OR z.v > d.v) WITHIN 7 MILLISECONDS"
    query = cerflow.parse(f"SELECT * WHERE {strategy}({part}) ; A AS d")
    generator = random.Random(7)
    for _ in range(10):
        numbers = [generator.randint(-1, 3) for _ in range(12)]
        times = sorted(generator.randint(0, 30) for _ in range(12))
        table = pa.table(
            {
                "type": generator.choices("AB", k=12),
                "v": numbers,
                "w": [float(n) for n in reversed(numbers)],
                "t": times,
            }
        )
        expected = bag(semantics(query, table, time="t"))
        for run in ENGINE_RUNNERS.values():
            assert bag(run(query, table, time="t")) == expected
