"""A snapshot that was altered, with a valid checksum, is refused or goes on: it never makes kernels go astray."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import cerflow
from cerflow import Recognizer, SnapshotError
from cerflow.engine import layout
from cerflow.engine.kernels.state.graph import meld
from cerflow.engine.state.snapshot import RECOGNIZER, read_snapshot, write_snapshot
from support import snapshot_mutants

MUTANTS = Path(snapshot_mutants.__file__)


@pytest.mark.slow
def test_mutants_are_refused_or_go_on():
    """In a child with limits: every kind of state is altered a few times. 2,000 and more are tried now and then."""
    child = subprocess.run(
        [sys.executable, MUTANTS, "7", "0", "200"], capture_output=True, text=True, timeout=600, check=False
    )
    said = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, (child.returncode, said[-1:], child.stderr[-2000:])
    outcomes = [line for line in said if len(line) == 3]
    assert len(outcomes) == 200
    assert [line for line in outcomes if line[2].startswith("raw")] == []
    kinds = Counter(outcome.split(":")[0].split(" to ")[0] for _, _, outcome in outcomes)
    # Both happen, or the mutants are too tame or too wild to say anything.
    assert kinds["refused"] > 60
    assert kinds["goes on"] > 20


@pytest.fixture(scope="module")
def base():
    return snapshot_mutants.Base("next texts")


def _cell(name, at, value):
    def change(contents):
        contents.arrays[name][at] = value

    return change


def _half(row, column, value):
    def change(contents):
        contents.arrays["nodes"].view("int32")[row, column] = value

    return change


ALTERED = {
    "a node that points to itself": (_half(9, layout.I_LEFT, 9), "points to no older one"),
    "a node that points to a later one": (_half(9, layout.I_CHILD, 12), "points to no older one"),
    "a mark beyond all": (_half(9, layout.I_MARK, 10**6), "a mark that is not there"),
    "a rank without end": (_half(9, layout.I_RANK, 10**6), "ranks of nodes"),
    "a start before its neighbours": (_cell("nodes", (3, 0), -(2**62)), "order of a heap"),
    "a label set beyond all": (_cell("marks", (2, 1), 99), "a label set that the query does not have"),
    "an event that is not kept": (_cell("marks", (-1, 0), 10**9), "an event that is not kept"),
    "a state beyond all": (_cell("configs", (-1, 0), 99), "a state that the query does not have"),
    "a partition beyond all": (_cell("configs", (-1, 1), 99), "a partition that is not there"),
    "a root beyond all": (_cell("configs", (0, 2), 10**6), "a root that is not there"),
    "a class beyond all": (_cell("configs", (0, 3), 10**6), "a class that is not there"),
    "members of one": (_cell("configs", (0, 4), 7), "one member has several"),
    "a string beyond all": (_cell("values", (slice(None), 1), 10**6), "a string that is not there"),
    "a key beyond all": (_cell("partition_long", (0, 1), 10**6), "a key that is not there"),
    "no latest time": (lambda contents: contents.description.pop("latest"), "does not say the latest time"),
    "a position beyond all": (lambda contents: contents.positions.__setitem__(-1, 10**6), "positions are among"),
}


@pytest.mark.parametrize(("change", "reason"), ALTERED.values(), ids=ALTERED)
def test_what_leads_astray_is_named(base, change, reason):
    contents = read_snapshot(RECOGNIZER, base.snapshot)
    contents.arrays = {name: array.copy() for name, array in contents.arrays.items()}
    contents.positions = contents.positions.copy()
    change(contents)
    with pytest.raises(SnapshotError, match=reason):
        base.restore(write_snapshot(RECOGNIZER, contents))


LISTS = {
    "a part that points to itself": (_half(9, layout.I_CHILD, 9), "points to no older one"),
    "a list that ends in what is not a part": (_half(9, layout.I_REST, 0), "goes on with what is not a part"),
    "a tree with half of another": (_half(9, layout.I_RIGHT, 1), "does not have its second half"),
    "a rank without end": (_half(9, layout.I_RANK, 10**6), "ranks of nodes"),
    "a mark beyond all": (_half(9, layout.I_MARK, 10**6), "a mark that is not there"),
    "a bottom that leads on": (_half(0, layout.I_REST, 5), "without events continues"),
    "a part of nothing": (_half(slice(1, None), layout.I_MARK, 0), "neither a mark nor parts"),
    "a list without weight": (_half(9, layout.I_WEIGHT, 0), "has no weight"),
    "a value that is less than the least": (_cell("nodes", (9, layout.W_VALUE), -(2**62)), "what is in its list"),
}


@pytest.mark.parametrize(("change", "reason"), LISTS.values(), ids=LISTS)
def test_lists_that_lead_astray_are_named(change, reason):
    test_what_leads_astray_is_named(snapshot_mutants.Base("last"), change, reason)


def test_a_refused_snapshot_changes_nothing():
    base = snapshot_mutants.Base("set")
    recognizer = base.restore(base.snapshot)
    other = base.restore(base.snapshot)
    whole = read_snapshot("set of queries", base.snapshot)
    whole.description["accepted"] = -1
    with pytest.raises(SnapshotError, match="'accepted' is -1"):
        recognizer.take_over(write_snapshot("set of queries", whole))
    later = snapshot_mutants.events(80, 130)
    assert {n: m.count() for n, m in recognizer.push(later).items()} == {
        n: m.count() for n, m in other.push(later).items()
    }
    # One that is taken over replaces what was seen before.
    recognizer.take_over(base.snapshot)
    assert recognizer.events == 80


def test_roles_that_do_not_fit(base):
    for changes in ({"position": "s"}, {"position": True}, {"type": None}, {"time": "s"}, {"stream": []}):
        contents = read_snapshot(RECOGNIZER, base.snapshot)
        contents.description.update(changes)
        with pytest.raises((SnapshotError, cerflow.QueryError)):
            base.restore(write_snapshot(RECOGNIZER, contents))
    with pytest.raises(cerflow.InputError, match="position column 's' is not a column of integers"):
        base.query.recognizer(snapshot_mutants.SCHEMA, position="s")
    assert isinstance(base.restore(base.snapshot), Recognizer)


def test_sets_that_are_not_disjoint_take_no_more_nodes_than_there_are():
    """Melding a set with itself doubles it, and its rank grows; no query does that, but an altered snapshot may."""
    nodes, path = np.zeros((64, layout.NODE_WORDS), np.int64), np.zeros(4, np.int32)
    marks = np.zeros((1, 2), np.int64)
    small, counters = nodes.view(np.int32), np.zeros(layout.COUNTERS, np.int64)
    counters[layout.N_NODES] = 2
    small[:2, [layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT]] = -1
    small[:2, layout.I_RANK] = 1
    root = 1
    for _ in range(200):
        root = meld(nodes, small, marks, counters, path, 60, root, root, -1)
        assert 0 <= root < counters[layout.N_NODES] <= 60
    assert counters[layout.N_NODES] > 50
    targets = small[:60, [layout.I_LEFT, layout.I_RIGHT]]
    assert (targets < np.arange(60)[:, None]).all()
