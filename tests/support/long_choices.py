"""Random NEXT, LAST and MAX over nested iterations on streams of 30 to 80 events, against the semantics.

A stream has far too many matches there, so the semantics is asked about one window at a time: of a query with a
window, what an event detects is what it detects in the events of the window that it ends. Without a window supports
are compared with the algorithms of the paper.

As a program, in ``tests``: ``python -m support.long_choices SEED CASES SECONDS``. A case that takes longer, or needs
gigabytes, ends the process; the case is printed before it is tried.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import sys

import pyarrow as pa

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream, support
from cerflow.language.select import Select
from cerflow.theory.semantics.complex_events import kept_by, within
from cerflow.theory.semantics.formulas import Denotation
from support.generators.limits import number, places
from support.paper_strategies import SelectiveEvaluation
from support.runners import complex_events, supports

STRATEGIES = ("NEXT", "NEXT", "LAST", "LAST", "MAX")
#: Bytes of address space a case may need.
MEMORY = 8 << 30
#: Windows: those of time and of an attribute have few events, as ``t`` and ``n`` mostly ascend.
WINDOWS = ("WITHIN {} EVENTS", "WITHIN {} EVENTS", "WITHIN {} MILLISECONDS", "WITHIN {} [n]", "")
Rows = list[dict[str, object]]


def formula(rng: random.Random, depth: int) -> str:
    """The text of a formula; parts are in parentheses."""

    def below() -> str:
        return formula(rng, depth - 1)

    if depth == 0 or rng.random() < 0.1:
        name = rng.choice("AAAB")
        return rng.choice((name, name, name, f"({name} AS x)", f"({name} FILTER {name}.v > 0)"))
    match rng.randrange(8):
        case 0 | 1:
            return f"({below()})+"
        case 2 | 3:
            return f"({below()}):+"
        case 4:
            return f"({below()} ; {below()})"
        case 5:
            return f"({below()} : {below()})"
        case 6:
            return f"({below()} OR {below()})"
    return f"({below()} WITHIN {rng.randint(2, 5)} EVENTS)" if depth > 1 else below()


def relating(rng: random.Random, text: str) -> str:
    """A formula around another whose registers differ from partial match to partial match."""
    comparison = rng.choice(("p.v < r.v", "p.v != r.v", "p.v = r.v"))
    return f"((A AS p ; {text} ; (A OR B) AS r) FILTER {comparison})"


def stream(rng: random.Random) -> Rows:
    time, ordered = places(rng), places(rng)
    rows: Rows = []
    types = rng.choice(("A", "AAAB", "AB", "AAABC"))
    for _ in range(rng.choice((30, 40, 60, 60, 80))):
        time += rng.choice((0, 1, 1, 1, 2))
        ordered += rng.choice((0, 1, 1, 1, 2))
        rows.append({"type": rng.choice(types), "t": time, "n": ordered, "v": number(rng, 0, 2)})
    return rows


def compare(rng: random.Random) -> None:
    """Make a case and compare the engine with the definitions."""
    text = formula(rng, rng.choice((1, 2, 2, 3)))
    if rng.random() < 0.15:
        text = relating(rng, text)
    strategy = rng.choice(STRATEGIES)
    # Without a window an event may have very many matches of one support; of MAX there may be very many supports.
    window = rng.choice(WINDOWS if strategy != "MAX" else WINDOWS[:-1]).format(rng.randint(1, 6))
    rows, cut, nested = stream(rng), rng.choice((1, 7, 30)), rng.random() < 0.2
    plain = f"SELECT {strategy} * WHERE {text} {window or 'LIMIT 1'}"
    written = f"SELECT * WHERE {strategy}({text} {window})" if nested and window else plain
    print(written, "".join(str(row["type"]) for row in rows), rows, cut, flush=True)
    select, query, table = cerflow.parse(plain).tree, cerflow.parse(written), pa.Table.from_pylist(rows)
    try:
        matches = query.match(table, time="t")
        found = matches.to_pylist()
    except UnsupportedQueryError:
        print("refused")
        return
    assert matches.count() == len(found)
    if select.window is None:
        transducer = compile_formula(select.formula)
        if transducer.registers or transducer.window is not None:
            return
        chosen = SelectiveEvaluation(transducer, select.strategy, Stream.from_dicts(rows, time="t")).outputs
        assert supports(found) == {(n, s) for n, s in enumerate(chosen) if s is not None}
        return
    expected = {(n, c) for n in range(len(rows)) for c in detected(select, rows[: n + 1])}
    assert complex_events(found) == expected
    assert len(found) == len(expected)
    recognizer = query.recognizer(table.schema, time="t")
    pieces = []
    for start in range(0, len(rows), cut):
        pieces += recognizer.push(table.slice(start, cut)).to_pylist()
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    assert complex_events(pieces) == expected
    print(len(found), "matches")


def detected(query: Select, rows: Rows) -> list[frozenset[tuple[str, int]]]:
    """The complex events of a query that the last row detects."""
    assert query.window is not None
    events = Stream.from_dicts(rows, time="t")
    last = len(rows) - 1
    first = last
    while first > 0 and within(frozenset((("", first - 1), ("", last))), query.window, events):
        first -= 1
    # The events of one window are enough.
    piece = Stream.from_dicts(rows[first:], time="t")
    matches = Denotation(query.formula, piece)(0, last - first)
    matches = frozenset(c for c in matches if within(c, query.window, piece))
    # A choice is one among supports: of each, one complex event is compared with the others.
    of_support = {support(c): c for c in matches}
    chosen = {support(c) for c in kept_by(query.strategy, of_support.values())}
    return [frozenset((label, first + k) for label, k in c) for c in matches if support(c) in chosen]


def main(seed: int, cases: int, seconds: float) -> None:
    """Compare cases, each within this many seconds."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    cerflow.parse("SELECT NEXT * WHERE A+ WITHIN 2 EVENTS").match(pa.table({"type": ["A"]})).to_pylist()
    for case in range(cases):
        faulthandler.dump_traceback_later(seconds, exit=True)
        print(f"case {case} of {seed}:", end=" ")
        compare(random.Random(f"{seed} {case}"))
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
