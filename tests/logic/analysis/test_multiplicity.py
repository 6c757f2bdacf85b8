from math import inf

import pyarrow as pa
import pytest
from hypothesis import given

from cerflow.base.schema import Schema
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.multiplicity import label_counts
from cerflow.logic.analysis.scopes import labels_of
from cerflow.logic.analysis.types import check_types
from cerflow.theory.semantics.formulas import Denotation
from support.generators.queries import Fragment, formulas, stream_of, streams
from support.generators.selects import cases

EVERYTHING = Fragment(more=True, aggregates=True)
SCHEMA = Schema(
    pa.schema(
        [
            ("type", pa.string()),
            ("t", pa.int64()),
            ("v", pa.int64()),
            ("w", pa.float64()),
            ("s", pa.string()),
            ("e", pa.string()),
            ("k", pa.int64()),
            ("n", pa.int64()),
        ]
    ),
    time="t",
)


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("A AS x ; B AS y", set()),
        ("A AS x ; B AS x", {"x"}),
        ("A AS x OR B AS x", set()),
        ("A+ AS x", {"A", "x"}),
        ("(A ; B) AS x", {"x"}),
        ("(A AS x ; B AS y) [x -> y]", {"y"}),
        ("(A AS x) [x -> A]", set()),
        ("A+ AND A", set()),
        ("A ; EVENT AS e", {"A"}),
        ("EVENT ; (C AS x) [C -> y]", set()),
        ("PROJECT x (A+ ; B AS x)", set()),
    ],
)
def test_labels_with_several_events(text, several):
    assert label_counts(parse_formula(text)).several == several


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("A{5} AS f ; B AS s", {"A": (5, 5), "f": (5, 5), "B": (1, 1), "s": (1, 1)}),
        ("A{2,5} AS f", {"A": (2, 5), "f": (2, 5)}),
        ("A+ AS f", {"A": (1, inf), "f": (1, inf)}),
        ("A ; B{0,} ; C?", {"A": (1, 1), "B": (0, inf), "C": (0, 1)}),
        ("(A AS f) OR (B AS s)", {"A": (0, 1), "f": (0, 1), "B": (0, 1), "s": (0, 1)}),
        ("A{2} ALL A{3}", {"A": (3, 5)}),
        ("A ; EVENT AS e", {"A": (1, 2), "e": (1, 1)}),
        ("(A{2} AS f ; B AS g) [f -> g]", {"A": (2, 2), "B": (1, 1), "g": (2, 3)}),
    ],
)
def test_counts_of_labels(text, counts):
    assert label_counts(parse_formula(text)).bounds == counts


@given(formulas(EVERYTHING), streams())
def test_number_of_events_of_a_label(formula, rows):
    stream = stream_of(rows)
    found = label_counts(formula)
    labels = labels_of(formula)
    bounds = found.bounds
    assert bounds.keys() == labels.assigned
    denotation = Denotation(formula, stream)
    for n in range(len(stream)):
        for c in denotation(0, n):
            for label, (least, most) in bounds.items():
                assert least <= sum(a == label for a, _ in c) <= most
            for label in {label for label, _ in c} | labels.bound:
                count = sum(a == label for a, _ in c)
                if label in labels.bound:
                    assert count == 1
                if label not in found.several and (label in labels.assigned or not found.types):
                    assert count <= 1
                assert label in labels.assigned or labels.wildcard


@given(cases(EVERYTHING, strategies=True))
def test_random_queries_have_no_faults(case):
    query, _ = case
    check_types(query, SCHEMA)


def test_a_type_of_one_branch_may_be_read_by_any_event_of_another():
    counts = label_counts(parse_formula("(EVENT AS x)+ OR (B AS y ; A)"))
    assert counts.several == {"x", "A", "B"}
    assert counts.types
