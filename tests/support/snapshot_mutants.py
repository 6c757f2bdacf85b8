"""Snapshots altered on purpose, with valid checksums: each is refused, or is the snapshot of something else.

    python tests/support/snapshot_mutants.py SEED FIRST LAST

tries the mutants ``[FIRST, LAST)``. It prints the number of each before trying it, and then how that ended, so whoever
started it knows which one took the process down.
"""

import json
import random
import resource
import signal
import sys
from itertools import islice

import numpy as np
import pyarrow as pa

import cerflow
from cerflow import CerflowError, QueryError, QuerySet, Recognizer, SnapshotError, UnsupportedQueryError
from cerflow.engine.state.snapshot import RECOGNIZER, SET, Contents, read_snapshot, write_snapshot

#: What one mutant may take: seconds of the processor, whatever else it does, and bytes of memory for all of them.
SECONDS, MEMORY = 30, 6 << 30

TEXTS = {
    "pair": "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 20 EVENTS",
    "texts": "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x.s != y.s AND y.v < z.v PARTITION BY k "
    "WITHIN 60 SECONDS",
    "order": "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.s < y.s AND y.s <= z.s WITHIN 15 EVENTS",
    "overlap": "SELECT x WHERE (A OR B) AS x ; (B OR C)+ AS y ; C AS z WITHIN 8 EVENTS",
    "attribute": "SELECT * WHERE A AS x ; B AS y ; C AS z PARTITION BY k WITHIN 9000 [t]",
    "local": "SELECT * WHERE A AS x : B AS y PARTITION BY k, n WITHIN 6 EVENTS",
    "inner": "SELECT * WHERE ((A AS x ; B AS y WITHIN 7 EVENTS) ; C AS z) FILTER x.v <= z.v",
    "next": "SELECT NEXT * WHERE A AS x ; B+ AS y ; C AS z WITHIN 12 EVENTS",
    "last": "SELECT LAST * WHERE A AS x ; (B OR C)+ AS y FILTER x.v < y.v PARTITION BY k WITHIN 30 SECONDS",
    "max": "SELECT MAX * WHERE (A ; B+ ; C) WITHIN 8 EVENTS",
    "members": "SELECT x WHERE A AS x ; (B OR C)+ AS y ; C AS z FILTER y.v < z.v WITHIN 8 EVENTS",
    "text members": "SELECT z WHERE A AS x ; B AS y ; C AS z FILTER x.v < z.v AND y.s = z.s WITHIN 12 EVENTS",
    "last texts": "SELECT LAST y, z WHERE A AS x ; B AS y ; C AS z FILTER x.v < z.v AND x.s = z.s PARTITION BY k "
    "WITHIN 12 EVENTS",
    "next texts": "SELECT NEXT y, z WHERE A AS x ; B AS y ; C AS z FILTER x.v < z.v AND x.s = z.s PARTITION BY k "
    "WITHIN 12 EVENTS",
    "strict": "SELECT STRICT * WHERE A AS x ; B AS y ; C AS z PARTITION BY k",
    "rows": "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER y.v < z.v AND x.s != z.s WITHIN 12 EVENTS",
    "sets": "SELECT * WHERE A+ AS x ; B+ AS y ; C AS z FILTER x.v + y.v < z.v + 9 AND x.s != z.s WITHIN 9 EVENTS",
    "sum": "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER sum(y.v) > z.v AND max(y.s) >= z.s WITHIN 9 EVENTS",
    "count": "SELECT COUNT(*) AS total WHERE A AS x ; B+ AS y ; C AS z PARTITION BY n WITHIN 14 EVENTS",
    "detect": "SELECT NONE WHERE A AS x ; B AS y ; C AS z FILTER x.s = y.s AND y.v < z.v WITHIN 20 EVENTS",
    "detect keys": "SELECT NONE WHERE A AS x ; B+ AS y ; C AS z FILTER x.v = z.v PARTITION BY k WITHIN 30 SECONDS",
    "consume": "SELECT * WHERE A AS x ; B+ AS y PARTITION BY k WITHIN 20 EVENTS CONSUME BY PARTITION",
    "limit": "SELECT * WHERE A AS x ; EVENT+ AS y ; C AS z WITHIN 8 EVENTS LIMIT 3",
    "start": "SELECT * WHERE START(A ; B AS y ; C AS z)",
    "unless": "SELECT * WHERE (A AS x ; C AS z) UNLESS (B AS y FILTER y.s = x.s) WITHIN 10 EVENTS",
    "sessions": "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x.v < z.v PARTITION BY k WITHIN 20 EVENTS",
    "memory": "[type = 'A'] AS x INTO r . [TRUE]* . [type = 'B' AND s = r.s AND v >= r.v] AS y",
}
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("type", "s", "k")] + [(name, pa.int64()) for name in ("v", "n", "t")]
)
IN_SET = ("pair", "texts", "next", "detect", "count")


def events(start, stop):
    rows = [
        {"type": "ABC"[i * 5 % 7 % 3], "s": f"s{i % 4}", "v": i * 13 % 11, "k": f"k{i % 3}", "n": i % 2, "t": i * 1000}
        for i in range(start, stop)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


class Base:
    """A query or a set of them, and its snapshot in the middle of a stream."""

    def __init__(self, name):
        self.query = None
        if name == "set":
            self.set = QuerySet({each: TEXTS[each] for each in IN_SET})
            recognizer = self.set.recognizer(SCHEMA, time="t")
        else:
            self.query = cerflow.parse(TEXTS[name], language="sremo" if name == "memory" else "ceql")
            recognizer = self.query.recognizer(SCHEMA, time="t", forget="4 seconds" if name == "sessions" else None)
        recognizer.push(events(0, 80))
        self.snapshot = recognizer.snapshot()

    def restore(self, data):
        if self.query is None:
            return self.set.restore(data, SCHEMA, time="t")
        return Recognizer.restore(self.query, data)

    def mutant(self, chance):
        if self.query is not None:
            return _altered(self.snapshot, RECOGNIZER, chance)
        whole = read_snapshot(SET, self.snapshot)
        parts = dict(whole.arrays)
        if chance.random() < 0.3:
            return _altered(self.snapshot, SET, chance)
        name = chance.choice(list(parts))
        parts[name] = np.frombuffer(_altered(parts[name].tobytes(), RECOGNIZER, chance), np.uint8)
        return write_snapshot(SET, Contents(whole.description, parts, whole.events, whole.positions))


def use(recognizer):
    """All that is done with a recogniser; raises what users would see."""
    found = [recognizer.push(events(80, 110)), *(recognizer.push(row) for row in events(110, 130).to_pylist())]
    for some in found:
        for matches in some.values() if isinstance(some, dict) else [some]:
            if "events" in matches.schema.names:
                matches.count()
            list(islice(matches, 100))
    recognizer.snapshot()
    recognizer.push(events(130, 160))


# -- altering ---------------------------------------------------------------------------------------------------------

NUMBERS = (0, 1, -1, -2, 2, 3, 7, 63, 64, 65, 2**15, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))


def _altered(snapshot, kind, chance):
    contents = read_snapshot(kind, snapshot)
    contents.arrays = {name: array.copy() for name, array in contents.arrays.items()}
    contents.positions = contents.positions.copy()
    before = write_snapshot(kind, contents)
    while True:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            what = chance.random()
            if what < 0.12:
                _alter_description(contents, chance)
            elif what < 0.2:
                _alter_events(contents, chance)
            else:
                _alter_arrays(contents, chance)
        if write_snapshot(kind, contents) != before:
            return write_snapshot(kind, contents)


def _alter_arrays(contents, chance):
    names = [name for name, array in contents.arrays.items() if array.size]
    name = chance.choice(names)
    array = contents.arrays[name]
    what = chance.random()
    if what < 0.75 or array.dtype == np.uint8:
        cells = array.view(np.int32) if name == "nodes" and chance.random() < 0.8 else array
        at = tuple(chance.randrange(length) for length in cells.shape)
        cells[at] = _number(cells, at, chance)
        return
    rows = len(array)
    a, b = chance.randrange(rows), chance.randrange(rows)
    if what < 0.8:
        array[[a, b]] = array[[b, a]]
    elif what < 0.85:
        contents.arrays[name] = np.delete(array, a, axis=0)
    elif what < 0.9:
        contents.arrays[name] = np.insert(array, a, array[b], axis=0)
    elif what < 0.93:
        contents.arrays[name] = array[: chance.randrange(rows)]
    elif what < 0.95:
        contents.arrays[name] = np.ascontiguousarray(array.T)
    elif what < 0.97:
        contents.arrays[name] = array.astype(np.int64 if array.dtype == np.int32 else np.int32)
    elif what < 0.99:
        array[...] = chance.choice((0, -1, 1))
    else:
        del contents.arrays[name]


def _number(cells, at, chance):
    old = int(cells[at])
    what = chance.random()
    if what < 0.4:
        new = old + chance.choice((-1, 1, -2, 2))
    elif what < 0.55:
        new = old ^ (1 << chance.randrange(8 * cells.dtype.itemsize - 1))
    elif what < 0.75:
        new = int(cells[tuple(chance.randrange(length) for length in cells.shape)])
    else:
        new = chance.choice(NUMBERS)
    bits = 8 * cells.dtype.itemsize
    if cells.dtype == np.uint8:
        return new % 256
    return (new + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _alter_description(contents, chance):
    description = contents.description
    name = chance.choice(list(description))
    value = description[name]
    if isinstance(value, list) and value and chance.random() < 0.7:
        value = list(value)
        at = chance.randrange(len(value))
        chance.choice((lambda: value.pop(at), lambda: value.insert(at, value[0]), lambda: value.reverse()))()
        description[name] = value
    elif type(value) is int and chance.random() < 0.7:
        description[name] = value + chance.choice((-1, 1, -10, 10, -(2**40), 2**62))
    elif chance.random() < 0.2:
        del description[name]
    else:
        description[name] = chance.choice((None, True, -1, 2**70, 1e300, "x", [], [[]], {"a": 1}))


def _alter_events(contents, chance):
    what, rows = chance.random(), contents.events.num_rows
    if what < 0.4 and len(contents.positions):
        at = chance.randrange(len(contents.positions))
        contents.positions[at] = _number(contents.positions, (at,), chance)
    elif what < 0.6 and rows:
        contents.events = contents.events.slice(chance.randrange(rows))
    elif what < 0.8 and contents.events.num_columns:
        contents.events = contents.events.drop_columns([chance.choice(contents.events.column_names)])
    elif rows:
        name = chance.choice(contents.events.column_names)
        at = contents.events.column_names.index(name)
        nulls = pa.nulls(rows, contents.events.schema.field(at).type)
        contents.events = contents.events.set_column(at, name, nulls)


# -- trying -----------------------------------------------------------------------------------------------------------


def main(seed, first, last):
    """Try some mutants."""
    names = [*TEXTS, "set"]
    bases = {}
    for number in range(first, last):
        chance = random.Random(f"{seed}-{number}")
        name = names[number % len(names)]
        if name not in bases:
            bases[name] = Base(name)
            use(bases[name].restore(bases[name].snapshot))
        data = bases[name].mutant(chance)
        print(json.dumps([number, name]), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        outcome = "goes on"
        try:
            recognizer = bases[name].restore(data)
            try:
                use(recognizer)
            except CerflowError as error:
                outcome = f"goes on to {type(error).__name__}"
        except (SnapshotError, QueryError, UnsupportedQueryError) as error:
            # The query may not fit the schema of which the snapshot tells.
            outcome = f"refused: {error}"
        except Exception as error:
            outcome = f"raw {type(error).__name__}: {error}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([number, name, outcome]), flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    main(*map(int, sys.argv[1:]))
