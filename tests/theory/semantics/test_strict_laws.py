"""Laws of STRICT, `:` and `:+` of the papers, as identities between formulas that the semantics evaluates."""

from itertools import product

from hypothesis import strategies as st

from cerflow.language.formula import (
    As,
    Disjunction,
    EventType,
    Formula,
    Iteration,
    Rename,
    Selection,
    Sequence,
    Strategy,
    StrictIteration,
    StrictSequence,
)
from support.laws import core, filtered, labels, law, predicates, same, wide

# --- STRICT by `:` and `:+` (§3.7) -----------------------------------------------------------------------------------


def strict(formula: Formula) -> Formula:
    return Selection(Strategy.STRICT, formula)


@law(core, labels)
def test_strict_of_as(a, label):
    return strict(As(a, label)), As(strict(a), label)


@law(core, labels, labels)
def test_strict_of_rename(a, old, new):
    return strict(Rename(a, old, new)), Rename(strict(a), old, new)


@law(core, labels, predicates)
def test_strict_of_filter(a, label, p):
    return strict(filtered(a, label, p)), filtered(strict(a), label, p)


@law(core, core)
def test_strict_of_sequence(a, b):
    return strict(Sequence(a, b)), StrictSequence(strict(a), strict(b))


@law(core, core)
def test_strict_of_or(a, b):
    return strict(Disjunction(a, b)), Disjunction(strict(a), strict(b))


@law(core)
def test_strict_of_iteration(a):
    return strict(Iteration(a)), StrictIteration(strict(a))


@law(wide)
def test_strict_twice(a):
    return strict(strict(a)), strict(a)


# --- `:` by STRICT (§3.8) --------------------------------------------------------------------------------------------


def test_strict_sequence_of_events():
    stream_rows = [{"type": t, "t": i} for i, t in enumerate("ABCABBAAB")]
    for a, b in product("ABC", repeat=2):
        pair = EventType(a), EventType(b)
        same(StrictSequence(*pair), strict(Sequence(*pair)), stream_rows)


@law(core, core, labels, labels)
def test_rename_before_strict_sequence(a, b, old, new):
    left = StrictSequence(Rename(a, old, new), b)
    if old == new:
        return left, StrictSequence(a, b)
    return left, Rename(Rename(StrictSequence(a, Rename(b, old, "fresh")), old, new), "fresh", old)


@law(core, core, labels, predicates)
def test_filter_before_strict_sequence(a, b, label, p):
    moved = filtered(StrictSequence(a, Rename(b, label, "fresh")), label, p)
    return StrictSequence(filtered(a, label, p), b), Rename(moved, "fresh", label)


@law(core, core, core)
def test_or_before_strict_sequence(a, b, c):
    return StrictSequence(Disjunction(a, b), c), Disjunction(StrictSequence(a, c), StrictSequence(b, c))


@law(core, core)
def test_iteration_before_strict_sequence(a, b):
    return (
        StrictSequence(Iteration(a), b),
        Disjunction(StrictSequence(a, b), Sequence(Iteration(a), StrictSequence(a, b))),
    )


@law(core, core)
def test_strict_sequence_of_strict(a, b):
    return StrictSequence(strict(a), strict(b)), strict(Sequence(a, b))


# --- `:+` without itself (§3.9) --------------------------------------------------------------------------------------


@law(st.sampled_from("ABC"))
def test_strict_iteration_of_events(a):
    return StrictIteration(EventType(a)), strict(Iteration(EventType(a)))


@law(core, labels, labels)
def test_strict_iteration_of_rename(a, old, new):
    return StrictIteration(Rename(a, old, new)), Rename(StrictIteration(a), old, new)


@law(core, labels, predicates)
def test_strict_iteration_of_filter(a, label, p):
    return StrictIteration(filtered(a, label, p)), filtered(StrictIteration(a), label, p)


@law(core)
def test_strict_iteration_of_strict(a):
    return StrictIteration(strict(a)), strict(Iteration(a))


@law(core)
def test_strict_iteration_of_iteration(a):
    return StrictIteration(Iteration(a)), Iteration(a)


@law(core, core)
def test_strict_iteration_of_sequence(a, b):
    again = Sequence(Iteration(StrictSequence(b, a)), b)
    return StrictIteration(Sequence(a, b)), Sequence(a, Disjunction(b, again))


@law(core, core)
def test_strict_iteration_of_strict_choice(a, b):
    return StrictIteration(Disjunction(strict(a), strict(b))), strict(Iteration(Disjunction(a, b)))


@law(core, core, core)
def test_strict_iteration_of_choice(c, r1, r2):
    a, b = StrictIteration(c), StrictIteration(Sequence(r1, r2))
    ab, ba = StrictIteration(StrictSequence(a, b)), StrictIteration(StrictSequence(b, a))
    cases = [a, b, ab, StrictSequence(a, ba), ba, StrictSequence(b, ab)]
    right = cases[0]
    for case in cases[1:]:
        right = Disjunction(right, case)
    return StrictIteration(Disjunction(c, Sequence(r1, r2))), right
