"""Steps told of the parts of a query."""

import pytest

import cerflow
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.look.studying.parts import TracedParts
from cerflow.look.studying.samples import read_sample

EVENTS = [
    {"type": kind, "v": v, "t": t} for kind, v, t in (("A", 3, 0), ("B", 2, 1), ("B", 9, 2), ("A", 9, 3), ("C", 9, 9))
]


def marks(text, place, number=-1):
    """The marks of a step, in the order of the parts in the text."""
    query = cerflow.parse(text)
    parts = TracedParts(query.tree, read_sample(query, EVENTS, time="t", time_unit="s"))
    found = parts.marks(place, number)
    return [(show(node, kinds=False), *found[id(node)].lines) for node in walk(query.tree) if id(node) in found]


def test_parts_have_an_event_wait_or_refuse():
    text = "SELECT x WHERE (A AS x ; B AS y ; A) FILTER y.v > x.v"
    assert marks(text, 0)[:2] == [("A AS x", "✓ this event", "… may begin"), ("B AS y", "… 1 waits for it")]
    assert marks(text, 1)[1] == ("B AS y", "✗ v > x.v (v = 2, x.v = 3)", "… 1 waits for it")
    # Parts with the same type are told apart, also those without a label.
    assert marks(text, 2)[0] == ("A AS x", "✓ event 0", "… may begin")
    assert marks(text, 2)[2] == ("A", "… 1 waits for it")
    assert marks(text, 4)[0] == ("A AS x", "✓ event 0, 3", "… may begin")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("SELECT * WHERE A ; C WITHIN 6 SECONDS", 2, "4 s left, since event 0"),
        ("SELECT * WHERE A ; C PARTITION BY t WITHIN 9 EVENTS", 0, "9 events left, since event 0"),
        ("SELECT * WHERE A ; C WITHIN 3 [v]", 0, "3 of 3 [v] left, since event 0"),
        ("SELECT * WHERE A NOT FOLLOWED BY C FOR 4 SECONDS", 1, "3 s left, since event 0"),
        ("SELECT * WHERE A ; B WITHIN 3 SECONDS", 3, "✗ 1 given up: the window of 3 SECONDS since event 0 is over"),
        ("SELECT * WHERE (A ; A) UNLESS B", 1, "✗ this event ends 1 partial match"),
        ("SELECT * WHERE A : A", 1, "✗ this event ends 1 partial match"),
    ],
)
def test_windows_and_ends_are_told_at_their_place(text, place, said):
    assert said in marks(text, place)[-1]


def test_a_deadline_that_passes_is_a_step():
    assert marks("SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 4 SECONDS", 4, 0)[0][1] == "✓ event 0, 3"


def test_refused_parts_have_no_marks():
    assert marks("SELECT * WHERE A UNLESS B", 1)[-1][1] == "✗ nothing can begin after this event"
    assert not [m for m in marks("SELECT * WHERE A UNLESS B", 0) if m[0] == "B"]
