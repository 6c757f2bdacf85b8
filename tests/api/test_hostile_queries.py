"""Queries that are made to take forever: in a child process, which has a limit of time and memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cerflow
from cerflow.base.errors import QuerySyntaxError

LIMIT = 120  # seconds of the processor, for what takes a few; other work on the machine does not count

PATTERNS = """
import cerflow
from cerflow.theory.semantics.operators import like, regexp

text = "a" * 40_000 + "b"
for condition in ("REGEXP '(a+)+$'", "REGEXP '(a|aa)+$'", "LIKE '" + "%a" * 20 + "'", "LIKE '" + "%_" * 20 + "a'"):
    query = cerflow.parse(f"SELECT * WHERE A AS x FILTER x.s {condition}")
    assert query.match([{"type": "A", "s": text}]).count() == 0, condition
assert not regexp(text, "(a+)+$")
assert not like(text[-2000:], "%a" * 20)
"""


def run(program: str) -> None:
    limits = f"for kind, most in ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_CPU, {LIMIT})):\n"
    limited = f"import resource\n{limits}    resource.setrlimit(kind, (most, most))\n{program}"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


@pytest.mark.slow
def test_patterns_are_matched_in_linear_time() -> None:
    run(PATTERNS)


LARGE = """
import cerflow

def joined(join, count, one):
    return join.join(one.format(k, k + 1) for k in range(count))

table = [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
for text in (
    "A AS x FILTER " + joined(" AND ", 200, "(x.v = {} OR x.v > {})"),
    "A AS x FILTER " + joined(" OR ", 200, "(x.v = {} AND x.v > {})"),
    "A AS x FILTER NOT (" + joined(" AND ", 200, "(x.v = {} OR x.v > {})") + ")",
    "A AS x ; B AS y FILTER " + joined(" OR ", 200, "(x.v = {} AND y.v > {})"),
    "(A AS x)+ FILTER " + joined(" AND ", 20, "(x.v = {} OR x.v > {})"),
    "(A AS x)+ FILTER " + joined(" OR ", 20, "(x.v = {} AND x.v > {})"),
    "A AS x FILTER x.v IN (" + joined(", ", 5_000, "{}") + ")",
    "A AS x FILTER " + joined(" AND ", 700, "x.v != {}"),
    "A AS x FILTER x[" + joined(" OR ", 700, "v = {}") + "]",
    "A AS x FILTER " + " FILTER ".join(f"x.v != {k}" for k in range(300)),
    joined(" OR ", 300, "A{}"),
    "(" + joined(" OR ", 1_000, "A{}") + ")+ ; (" + joined(" OR ", 1_000, "B{}") + ")+",
    joined(" ; ", 300, "A"),
    "A AS x FILTER x.v = " + "+".join("1" * 1_000),
    "(" * 1_000 + "A" + ")" * 1_000,
    "A AS x FILTER " + "(" * 1_000 + "x.v = 1" + ")" * 1_000,
    "A AS x FILTER " + "NOT " * 1_000 + "x.v = 1",
    "A AS x FILTER x.v = " + "- " * 1_000 + "x.v",
):
    query = cerflow.parse("SELECT * WHERE " + text)
    assert len(query.match(table).to_pylist()) <= 2, text[:80]
    query.check()
    query.warnings()
    query.explain()
"""


@pytest.mark.long
@pytest.mark.slow
def test_large_queries_are_compiled_explained_and_matched() -> None:
    run(LARGE)


def test_texts_of_megabytes_are_refused() -> None:
    text = "SELECT * WHERE A AS x FILTER x.v IN (" + "1, " * 1_000_000 + "1)"
    with pytest.raises(QuerySyntaxError, match="has 3,000,039 characters; at most 1,000,000 are allowed") as caught:
        cerflow.parse(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (" OR ".join(f"T{k}" for k in range(5_001)), "the formula names 5,001 events; at most 5,000"),
        ("A AS a FILTER " + " OR ".join(f"a.v = {k}" for k in range(20_000)), "at most 50,000 are allowed"),
    ],
)
def test_queries_with_too_many_parts_are_refused(formula: str, message: str) -> None:
    with pytest.raises(cerflow.UnsupportedQueryError, match=message):
        cerflow.parse(f"SELECT * WHERE {formula}")
