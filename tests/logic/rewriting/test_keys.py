"""Keys that follow from equalities."""

import datetime
import random
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import QueryError, SnapshotError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.engine.recognize import planning
from cerflow.language.printer import show
from cerflow.logic.rewriting.keys import implied_keys, keys_added, with_implied_keys
from support.runners import ENGINE_RUNNERS, EXAMPLES, bag, narrowed, one_batch, one_by_one, semantics

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.int64()),
        ("k", pa.int64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.timestamp("us")),
        ("w", pa.float64()),
        ("g", pa.string()),
    ]
)
SCHEMA = Schema(COLUMNS, time="t")
PAIR = "(A AS a ; B AS b) FILTER a.k = b.k"


def keys(text, schema=SCHEMA):
    """The attributes that are keys; those that an event of a match may lack have a question mark."""
    found = implied_keys(cerflow.parse(text if "SELECT" in text else f"SELECT * WHERE {text}").tree, schema)
    return " ".join(key.attribute + "?" * key.total for key in found)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (PAIR, "k"),
        ("A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.k = c.k", "k"),
        ("A AS a ; B AS b ; C AS c FILTER a.k = b.k AND c.k = b.k AND a.s = b.s AND a.s = c.s", "k s"),
        ("(A AS a ; B AS b FILTER a.k = b.k) ; C AS c FILTER c.k = a.k", "k"),
        # A filter that reads a label around it, and one in brackets.
        ("A AS a ; (B AS b FILTER b.k = a.k)", "k"),
        ("A AS a ; B AS b FILTER b[k = a.k]", "k"),
        # Each event of an iteration agrees with that before it.
        ("A AS a ; B+ AS b ; C AS c FILTER b.k = a.k AND c.k = a.k", "k"),
        ("A AS a ; (B AS b FILTER b.k = a.k)+ ; C AS c FILTER c.k = a.k", "k"),
        ("A AS a ; B{2,3} AS b FILTER b.k = a.k", "k"),
        # Both branches, and with and without an optional part.
        ("A AS a ; ((B AS b) OR (C AS c)) FILTER b.k = a.k AND c.k = a.k", "k"),
        ("A AS a ; ((B OR C) AS b) FILTER b.k = a.k", "k"),
        ("A AS a ; (B AS b)? ; C AS c FILTER a.k = b.k AND a.k = c.k", "k"),
        # Parts that are projected away or renamed, and other operators.
        ("PROJECT b (A AS a ; B AS b FILTER a.k = b.k)", "k"),
        ("((A AS a ; B AS b) FILTER a.k = b.k)[a -> x] ; C AS c FILTER c.k = x.k", "k"),
        ("(A AS a ALL B AS b) FILTER a.k = b.k", "k"),
        ("((A AS a ; B AS b) AND (A AS a ; B AS b)) FILTER a.k = b.k", "k"),
        ("A AS a ; (EVENT AS b FILTER b.k = a.k)", "k"),
        # Negated parts whose events agree.
        (f"({PAIR}) WITHOUT (C AS c FILTER c.k = a.k)", "k"),
        (f"({PAIR}) UNLESS ((C AS c ; D AS d) FILTER c.k = a.k AND c.k = d.k)", "k"),
        (f"({PAIR}) WITHOUT (((C OR D) AS c) FILTER c.k = b.k)", "k"),
        (f"({PAIR}) WITHOUT ((C AS c FILTER c.k = a.k) UNLESS (D AS d FILTER d.k = c.k))", "k"),
        (f"({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE", "k"),
        (f"(({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE) ; D AS d FILTER d.k = a.k", "k"),
        # One event may match without a value, unless something is asked of it.
        ("A AS a NOT FOLLOWED BY (B AS b FILTER b.k = a.k) FOR 1 MINUTE", "k?"),
        ("(A AS a FILTER a.k IS NOT NULL) NOT FOLLOWED BY (B AS b FILTER b.k = a.k) FOR 1 MINUTE", "k"),
        ("(A AS a FILTER a.s > '') NOT FOLLOWED BY (B AS b FILTER b.s = a.s) FOR 1 MINUTE", "s"),
        ("A AS a ; (B AS b)? FILTER a.k = b.k", "k?"),
        # Strategies that choose among events that agree.
        (f"NEXT({PAIR})", "k"),
        (f"C AS c ; LAST({PAIR}) FILTER c.k = a.k", "k"),
        (f"SELECT MAX a WHERE {PAIR} WITHIN 1 MINUTE LIMIT 3", "k"),
        (f"SELECT NONE WHERE {PAIR}", "k"),
        (f"SELECT COUNT(*) AS n WHERE {PAIR} PARTITION BY g", "k"),
    ],
)
def test_what_is_a_key(formula, expected):
    assert keys(formula) == expected


@pytest.mark.parametrize(
    "text",
    [
        "A AS a ; B AS b",
        "A AS a ; B AS b ; C AS c FILTER a.k = b.k",
        "A AS a ; B AS b FILTER a.k = b.s",
        "A AS a ; B AS b FILTER a.k = b.t",
        # Floats, and the type.
        "A AS a ; B AS b FILTER a.w = b.w",
        "A AS a ; EVENT AS b FILTER a.type = b.type",
        # Not always.
        "A AS a ; B AS b FILTER a.k = b.k OR a.s = b.s",
        "A AS a ; B AS b FILTER NOT a.k = b.k",
        "A AS a ; B AS b FILTER a.k <= b.k AND a.k >= b.k",
        "A AS a ; B+ AS b FILTER SOME b: a.k = b.k",
        "A AS a ; B+ AS b FILTER b[k = a.k AND (prev(k) = k)]",
        "(A AS a ; B AS b FILTER a.k = b.k) OR (A AS a ; B AS b)",
        "A AS a ; (B AS b)? ; C AS c FILTER a.k = b.k AND b.k = c.k",
        "A AS a ; ((B AS b) OR (C AS c)) FILTER b.k = a.k",
        # Only inside an iteration.
        f"({PAIR})+",
        "A+ AS a ; B+ AS b FILTER a[k = prev(k)]",
        "(A AS a)+ FILTER a.k = a.k",
        # An event that the filter does not see.
        "(PROJECT b (A AS a ; B AS b)) ; C AS c FILTER b.k = c.k",
        "A AS a ; NOT(B FILTER B.k = a.k)",
        # A negated part of all keys, or of another one.
        f"({PAIR}) WITHOUT C",
        f"({PAIR}) WITHOUT (C AS c FILTER c.s = a.s)",
        f"({PAIR}) UNLESS (C AS c ; D AS d FILTER c.k = a.k)",
        f"({PAIR}) UNLESS (C AS c ; D AS d FILTER c.k = d.k)",
        f"({PAIR}) WITHOUT ((C AS c FILTER c.k = a.k) OR D)",
        # What counts other events.
        "A AS a : B AS b FILTER a.k = b.k",
        "A AS a ; (B :+) AS b FILTER a.k = b.k",
        "A AS a ; B:{2} AS b FILTER a.k = b.k",
        f"START({PAIR})",
        f"STRICT({PAIR})",
        f"SELECT STRICT * WHERE {PAIR}",
        f"ANY({PAIR})",
        f"({PAIR}) WITHIN 5 EVENTS",
        f"({PAIR}) WITHIN 5 [t]",
        f"SELECT * WHERE {PAIR} WITHIN 5 EVENTS",
        f"SELECT * WHERE {PAIR} CONSUME BY ANY",
        f"SELECT * WHERE {PAIR} CONSUME BY PARTITION",
        f"SELECT MATCH_NUMBER() AS n WHERE {PAIR}",
        "SELECT * WHERE SREMO([type = 'A'] AS a . [type = 'B' AND k = 1] AS b)",
        "C AS c ; NEXT(A AS a ; B AS b) FILTER a.k = b.k AND c.k = a.k",
        # Deadlines that depend on which event is the last one before them.
        f"({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 5 EVENTS",
        f"({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 5 [t]",
        f"(({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE) "
        "NOT FOLLOWED BY (D AS d FILTER d.k = b.k) FOR 2 MINUTES",
        f"({PAIR}) NOT FOLLOWED BY ((C AS c FILTER c.k = b.k) "
        "NOT FOLLOWED BY (D AS d FILTER d.k = c.k) FOR 1 MINUTE) FOR 2 MINUTES",
        f"({PAIR}) WITHOUT ((C AS c FILTER c.k = a.k) NOT FOLLOWED BY (D AS d FILTER d.k = c.k) FOR 1 MINUTE)",
        f"(({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE) AND ({PAIR})",
        *(
            f"SELECT {what} WHERE ({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE{limit}"
            for what, limit in [("NEXT *", ""), ("ANY *", ""), ("NONE", ""), ("COUNT(*) AS n", ""), ("*", " LIMIT 1")]
        ),
        f"NEXT({PAIR}) NOT FOLLOWED BY (C AS c FILTER c.k = b.k) FOR 1 MINUTE",
        # Matches of two keys would be the same.
        f"SELECT d WHERE (({PAIR}) OR ((A AS a ; D AS d) FILTER a.k = d.k)) "
        "NOT FOLLOWED BY (C AS c FILTER c.k = a.k) FOR 1 MINUTE",
    ],
)
def test_what_is_none(text):
    assert keys(text) == ""


def test_kinds_and_pauses():
    columns = pa.schema([("type", pa.string()), ("t", pa.int64()), ("k", pa.decimal128(9, 0))])
    assert keys(PAIR, Schema(columns, time="t")) == ""
    assert keys(PAIR, replace(SCHEMA, forget=1000)) == ""
    columns = pa.schema([("type", pa.string()), ("k", pa.dictionary(pa.int32(), pa.string()))])
    assert keys(PAIR, Schema(columns)) == "k"


def test_equalities_are_left_out():
    def after(text):
        select = cerflow.parse(f"SELECT * WHERE {text}").tree
        divided = with_implied_keys(select, SCHEMA)
        assert (divided is select) == (not keys_added(select, divided) and divided.formula == select.formula)
        return show(divided).replace("\0", "")

    # Without a negated part registers and joins do as well.
    assert after(PAIR) == "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k"
    text = f"({PAIR} AND a.w < b.w) WITHOUT (C AS c FILTER c.k = a.k)"
    assert after(text).endswith("WHERE (A AS a ; B AS b FILTER a.w < b.w) WITHOUT C AS c PARTITION BY k")
    assert after(f"{text} PARTITION BY k").endswith("WITHOUT C AS c PARTITION BY k")
    text = "A AS a NOT FOLLOWED BY (B AS b FILTER b.k = a.k) FOR 1 MINUTE"
    assert '(B AS b FILTER b.k IS NOT NULL) FOR 1 MINUTE PARTITION BY "value of k", "missing k"' in after(text)


def test_a_label_that_only_a_type_gives():
    """No event need have it, and then nothing is asked of the other side."""
    query = cerflow.parse(
        "SELECT * WHERE (EVENT AS a FILTER a.k = B.k) NOT FOLLOWED BY (C AS c FILTER c.k = a.k) FOR 2 SECONDS"
    )
    assert [key.total for key in implied_keys(query.tree, SCHEMA)] == [True]
    table = pa.table({"type": [*"AABBCAA"], "t": [0, 0, 0, 0, 1000, 3000, 9000], "k": [None, 1, None, 2, 1, 2, 3]})
    expected = semantics(query, table, time="t")
    assert [match["start"] for match in expected] == [0, 3, 4, 5]
    for run in (one_batch, narrowed, one_by_one):
        assert bag(run(query, table, time="t")) == bag(expected)


def test_explain_and_columns():
    text = "SELECT b.w AS w WHERE ((A AS a ; B AS b) FILTER a.k = b.k) WITHOUT (C AS c FILTER c.k = a.k)"
    query = cerflow.parse(text)
    assert "k: conditions make all events" in query.explain(schema=SCHEMA)
    assert "divided by" not in query.explain()
    table = pa.table({"type": ["A", "B"], "t": [1, 2], "k": [1, 1], "w": [0.5, 1.5]})
    assert query.match(table, time="t").to_arrow().column_names == [
        *("detected_at", "detected_time", "start", "end", "start_time", "end_time", "w")
    ]


def test_other_snapshots_are_refused():
    text = "SELECT * WHERE A AS a NOT FOLLOWED BY (B AS b FILTER b.k = a.k) FOR 1 MINUTE"
    with mock.patch.object(planning, "with_implied_keys", lambda select, _: select):
        query = cerflow.parse(text)
        snapshot = query.recognizer(COLUMNS, time="t").snapshot()
    with pytest.raises(SnapshotError, match="different"):
        cerflow.Recognizer.restore(cerflow.parse(text), snapshot)


class Queries:
    """Random queries with equalities, and streams in which values are null, and times are equal."""

    INTEGERS = (None, 0, 1, -1, 2**63 - 1, -(2**63) + 1)
    MOMENTS = (datetime.datetime(1970, 1, 1), datetime.datetime(2020, 1, 1), None)
    #: Those of the last five columns.
    VALUES = (
        ("", "a", "a", None),
        (True, False, None),
        MOMENTS,
        (0.0, -0.0, float("nan"), None),
        ("x", "x", "y", None),
    )

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def filtered(self, part, own, around=()):
        asked = []
        for _ in range(self.random.randint(1, len(own) + 1)):
            x, y = self.random.choice(own), self.random.choice([*own, *around])
            equal = f"{x}.{self.key} = {y}.{self.key}"
            others = [f"{x}.{self.key} IS NOT NULL", f"{x}[{equal[2:]}]", f"({equal} OR {x}.k > 0)"]
            asked.append(self.random.choice(others) if self.chance(0.2) else equal)
        if self.chance(0.5) and len(own) > 1:
            asked = [f"{x}.{self.key} = {y}.{self.key}" for x, y in pairwise(own)]
        return f"({part} FILTER {' AND '.join(asked)})"

    def positive(self, labels, around=(), inner=False):
        choice = self.random.choice
        if len(labels) == 1:
            event = f"({choice(['A', 'B', 'C', 'EVENT'])} AS {labels[0]})"
            optional = "?" if inner and self.chance(0.1) else ""
            part = event + (optional or self.random.choices(["", "+", "{1,2}"], [16, 2, 1])[0])
        else:
            cut = self.random.randint(1, len(labels) - 1)
            left = self.positive(labels[:cut], around, inner=True)
            right = self.positive(labels[cut:], [*around, *labels[:cut]], inner=True)
            part = f"({left} {self.random.choices([';', 'OR', 'AND', 'ALL'], [8, 2, 1, 1])[0]} {right})"
        if not part.endswith("?") and self.chance(0.2 if len(labels) == 1 else 0.5):
            part = self.filtered(part, labels, around)
        others = [
            f"NEXT({part})",
            f"LAST({part})",
            f"(PROJECT {choice(labels)} ({part}))",
            f"({part} WITHIN 3 SECONDS)",
        ]
        return choice(others) if self.chance(0.15) else part

    def without(self, part, labels, names):
        own = names[: self.random.choice([1, 1, 2])]
        excluded = self.positive(own, labels) if self.chance(0.4) else "(" + " ; ".join(f"C AS {x}" for x in own) + ")"
        tie = self.random.choice(labels)
        if self.chance(0.9):
            excluded += f" FILTER {' AND '.join(f'{x}.{self.key} = {tie}.{self.key}' for x in own)}"
        operator = self.random.choice(["UNLESS", "WITHOUT", "NOT FOLLOWED BY"])
        deadline = f" FOR {self.random.randint(1, 3)} SECONDS" if operator == "NOT FOLLOWED BY" else ""
        return f"({part} {operator} ({excluded}){deadline})"

    def query(self):
        self.key = self.random.choices("ksbmw", [8, 6, 2, 2, 1])[0]
        labels = list("pqo")[: self.random.randint(1, 3)]
        part = self.without(self.filtered(self.positive(labels), labels), labels, "xy")
        if self.chance(0.25):
            equal = f"z.{self.key} = {self.random.choice(labels)}.{self.key}"
            others = [f"({part} ; (B AS z FILTER {equal}))", f"((B AS z ; {part}) FILTER {equal})"]
            part, labels = self.random.choice(others), [*labels, "z"]
            part = self.without(part, labels, "vu") if self.chance(0.5) else part
        some, label = self.random.choices, self.random.choice(labels)
        strategy = some(["", "NEXT", "LAST", "MAX", "ANY"], [16, 2, 2, 1, 1])[0]
        items = some(["*", "NONE", "COUNT(*) AS n", label, f"{label}.k AS h"], [6, 1, 1, 2, 1])[0]
        rest = some(["", " PARTITION BY g", f" PARTITION BY {self.key}"], [8, 1, 1])[0]
        rest += some(["", " WITHIN 4 SECONDS", " WITHIN 1 MINUTE"], [2, 1, 1])[0]
        return f"SELECT {strategy} {items} WHERE {part}{rest}{' LIMIT 1' if self.chance(0.05) else ''}"

    def table(self):
        count, some = self.random.randint(2, 9), self.random.choices
        times = sorted(self.random.randint(0, 8) * 1000 for _ in range(count))
        integers = some([*self.random.sample(self.INTEGERS, 2), None], [4, 4, 2], k=count)
        rows = [some("AAABBC", k=count), times, integers, *(some(v, k=count) for v in self.VALUES)]
        return pa.table(rows, schema=COLUMNS)


def with_threads(query, table, **roles):
    return query.match(table, threads=2, **roles).to_pylist()


def in_a_set(query, table, **roles):
    other = cerflow.parse("SELECT * WHERE A AS a ; C AS c")
    return cerflow.QuerySet({"one": query, "other": other}).match(table, **roles)["one"].to_pylist()


def as_time_passes(query, table, **roles):
    """Events one by one, and the clock before each."""
    recognizer, found = query.recognizer(table.schema, **roles), []
    for row in table.to_pylist():
        found += recognizer.advance(row["t"]).to_pylist()
        found += recognizer.push(row).to_pylist()
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_matches_stay_the_same(seed):
    own = Queries(seed)
    runners = [*ENGINE_RUNNERS.values(), with_threads, in_a_set]
    divided = found = 0
    for _ in range(max(25, int(500 * EXAMPLES))):
        text = own.query()
        try:
            tree = cerflow.parse(text).tree
        except QueryError:  # a label that is taken away or excluded
            continue
        implied = implied_keys(tree, SCHEMA)
        if not implied:
            continue
        divided += 1
        for _ in range(3):
            table = own.table()
            expected = bag(semantics(cerflow.parse(text), table, time="t"))
            found += bool(expected)
            try:
                with mock.patch.object(planning, "with_implied_keys", lambda select, _: select):
                    before = bag(one_batch(cerflow.parse(text), table, time="t"))
                    clocked = bag(as_time_passes(cerflow.parse(text), table, time="t"))
            except UnsupportedQueryError:
                before = None
            chosen = "ANY" in text or "LIMIT" in text
            assert before == expected or before is None or chosen, text
            if not any(key.total for key in implied) and not chosen:
                more = [(key.attribute,) for key in implied]
                whole = replace(tree, partition=(*tree.partition, *more), key_spans=())
                names = whole.key_columns[len(tree.partition) :]
                rows = semantics(cerflow.Query(whole), table, time="t")
                assert bag([{n: v for n, v in row.items() if n not in names} for row in rows]) == expected, text
            for run in runners if before is not None else ():
                assert bag(run(cerflow.parse(text), table, time="t")) == before, (text, run)
            if before is not None:
                assert bag(as_time_passes(cerflow.parse(text), table, time="t")) == clocked, text
    assert divided > 2
    assert found


def test_events_of_some_streams():
    rows = [(k % 3, "ABC"[k % 3], k, k % 5 or None, "xyz"[k % 7 % 3]) for k in range(60)]
    table = pa.Table.from_pylist([{"type": y, "t": t * 1000, "k": k, "stream": s} for _, y, t, k, s in rows])
    for text in [
        "SELECT * FROM x, y WHERE A AS a NOT FOLLOWED BY (B AS b FILTER b.k = a.k) FOR 9 SECONDS",
        "SELECT * FROM x, z WHERE (A AS a ; C AS b FILTER a.k = b.k) WITHOUT (B AS c FILTER c.k = a.k)",
    ]:
        query = cerflow.parse(text)
        expected = bag(semantics(query, table, time="t", stream="stream"))
        assert expected
        for run in (one_batch, narrowed, one_by_one):
            assert bag(run(query, table, time="t", stream="stream")) == expected
