"""Expressions of pyarrow are true of the same events as conditions are to the engine."""

import pyarrow as pa
import pytest
from hypothesis import event, given

from cerflow.conditions.guards import Satisfied, TypeTest
from cerflow.conditions.propositions import is_not_true, is_true, leaves_of
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Like,
    Literal,
    Not,
    Regexp,
)
from cerflow.pushdown.arrow import ArrowTranslation, arrow_filter
from cerflow.pushdown.relevance import plainly
from cerflow.values.operators import Operator
from support import adversarial
from support.runners import examples


def satisfied(proposition):
    found = arrow_filter(proposition, adversarial.SCHEMA)
    numbered = adversarial.TABLE.append_column("at", pa.array(range(len(adversarial.TABLE))))
    kept = set((numbered if found is None else numbered.filter(found))["at"].to_pylist())
    return [at in kept for at in range(len(numbered))]


@examples(400)
@given(adversarial.conditions())
def test_they_are_true_of_the_same_rows_as_the_conditions(condition):
    decides = ArrowTranslation(adversarial.SCHEMA).decides
    for make, asked in ((is_true, condition), (is_not_true, Not(Satisfied(condition)))):
        proposition = plainly(make(condition), adversarial.SCHEMA)
        exact = all(map(decides, leaves_of(proposition)))
        event(
            "exact" if exact else "weaker" if arrow_filter(proposition, adversarial.SCHEMA) is not None else "nothing"
        )
        found, expected = satisfied(proposition), adversarial.truth(asked)
        assert adversarial.truth(proposition) == expected
        if exact:
            assert found == expected
        else:
            assert all(kept for kept, true in zip(found, expected) if true)


A, F = Attribute(None, "s"), Attribute(None, "f64")


@pytest.mark.parametrize(
    ("condition", "decided"),
    [
        (Comparison(Operator.GE, A, Literal("b")), True),
        (Comparison(Operator.NE, F, Literal(0.5)), True),
        (Comparison(Operator.LT, Attribute(None, "i64"), Literal(2**53)), True),
        (Comparison(Operator.LT, Attribute(None, "i64"), Literal(2.0**53)), False),
        (Comparison(Operator.GT, Attribute(None, "wide"), Literal(1)), False),
        (Comparison(Operator.EQ, A, Literal("\ud800")), False),
        (Comparison(Operator.EQ, Attribute(None, "zoned"), Literal("2024-01-01")), True),
        (Comparison(Operator.EQ, Attribute(None, "day"), Literal("2024-01-01")), False),
        (Like(A, "a%b"), True),
        (Like(A, "a_b"), False),
        (Regexp(A, "a"), False),
        (TypeTest("a"), True),
    ],
)
def test_what_is_decided(condition, decided):
    assert ArrowTranslation(adversarial.SCHEMA).decides(condition) is decided
    assert (arrow_filter(is_true(condition), adversarial.SCHEMA) is not None) is decided
