"""Errata of the papers that concern automata, as runs of automata written down by hand; named after the erratum.

E… are those of complex event logic §11, 11.… those of register transducers §11.
"""

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition, Write
from cerflow.base.events import Stream
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Not,
)
from cerflow.language.formula import Strategy
from cerflow.language.parser import parse_formula
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Satisfied, Stored, TypeTest
from cerflow.theory.semantics.complex_events import kept_by
from cerflow.theory.semantics.formulas import Denotation
from support.golden import at_end, rows
from support.transducer_runs import accepting_runs

MARK = frozenset({"event"})
SKIP = frozenset()
ID, TYPE = Attribute(None, "id"), Attribute(None, "type")
A, B, C, S = (TypeTest(name) for name in ("a", "b", "c", "S"))


def same(attribute, register):
    return Comparison(Operator.EQ, attribute, Stored(register, 0))


def write(register, value=ID):
    return Write(register, (value,), fresh=True)


def automaton(*transitions, final, registers=0):
    states = 1 + max(max(t.source, t.target) for t in transitions)
    kept = tuple(Register(Accumulation.VALUE, 1, f"register {k}") for k in range(registers))
    return Transducer(states, frozenset({0}), frozenset(final), transitions, kept)


def found(transducer, stream, *, reporting=True):
    return {
        (n, frozenset(p for _, p in c)) for n, c in matches(transducer, Stream.from_dicts(stream), reporting=reporting)
    }


def selected(strategy, transducer, stream):
    """What a strategy keeps of the matches that end together."""
    kept = set()
    answers = matches(transducer, Stream.from_dicts(stream), reporting=True)
    for n in range(len(stream)):
        kept |= {(n, frozenset(p for _, p in c)) for c in kept_by(strategy, [c for end, c in answers if end == n])}
    return kept


def test_E4_next_where_a_final_state_is_entered_without_a_mark():
    b = TypeTest("B")
    transducer = automaton(
        Transition(1, 1, b, labels=MARK), Transition(0, 0, b, labels=MARK), Transition(0, 1, b), final={1}
    )
    assert found(transducer, rows("BB")) == at_end("1")
    assert selected(Strategy.NEXT, transducer, rows("BB")) == at_end("1")
    # The run that is greater, {0}, ends in a final state too, but it may not report there.
    assert found(transducer, rows("BB"), reporting=False) == {(0, frozenset())} | at_end("1") | {(1, frozenset({0}))}


def test_E5_last():
    transducer = automaton(
        Transition(0, 0), Transition(0, 1, labels=MARK), Transition(1, 0, TypeTest("A"), labels=MARK), final={1}
    )
    expected = at_end("0", "1", "012", "123")
    assert selected(Strategy.LAST, transducer, rows("AAAA")) == expected
    # What the construction of the paper gives in place of the last one is a match, but a lesser one.
    assert (3, frozenset({0, 1, 3})) in found(transducer, rows("AAAA"))


def test_E6_strict_iteration_needs_the_loop_on_the_new_state():
    a, label = TypeTest("A"), frozenset({"A"})
    printed = (
        Transition(0, 0),
        Transition(0, 1, a, labels=label),
        Transition(0, 2, a, labels=label),
        Transition(2, 1, a, labels=label),
    )
    at_2 = {(2, frozenset(places)) for places in ({2}, {1, 2})}
    whole = {(2, frozenset({0, 1, 2}))}
    last = [m for m in found(automaton(*printed, final={1}), rows("AAA")) if m[0] == 2]
    assert set(last) == at_2
    repaired = automaton(*printed, Transition(2, 2, a, labels=label), final={1})
    assert {m for m in found(repaired, rows("AAA")) if m[0] == 2} == at_2 | whole
    compiled = compile_formula(parse_formula("A :+"))
    assert {m for m in found(compiled, rows("AAA")) if m[0] == 2} == at_2 | whole


def test_E16_renaming_a_label_does_not_rename_the_type_that_is_read():
    formula = parse_formula("(A [A -> B] ; A) FILTER B.v = 1")
    stream = Stream.from_dicts(rows("ABA", v=[1, 1, 1]))
    assert matches(compile_formula(formula), stream) == {(2, c) for c in Denotation(formula, stream)(0, 2)}
    assert matches(compile_formula(formula), stream) == {(2, frozenset({("B", 0), ("A", 2)}))}


def test_11_2_acceptance_and_reporting_differ():
    transducer = automaton(Transition(0, 1, A, labels=MARK), Transition(1, 2, B), final={2})
    assert found(transducer, rows("ab"), reporting=False) == {(1, frozenset({0}))}
    assert found(transducer, rows("ab")) == set()


def test_11_3_transitions_with_different_writes_must_not_be_united():
    begin = Transition(0, 1, A, labels=MARK, writes=(write(1),))
    apart = automaton(
        begin,
        Transition(1, 2, B, labels=MARK, writes=(write(0),)),
        Transition(2, 4, TRUE, (same(ID, 1),), MARK),
        Transition(1, 3, B, labels=MARK, writes=(write(1),)),
        Transition(3, 4, C, (same(ID, 0),), MARK),
        final={4},
        registers=2,
    )
    united = automaton(
        begin,
        Transition(1, 2, B, labels=MARK, writes=(write(0), write(1))),
        Transition(2, 3, TRUE, (same(ID, 1),), MARK),
        Transition(2, 3, C, (same(ID, 0),), MARK),
        final={3},
        registers=2,
    )
    kept, lost = rows("abx", id=[1, 2, 1]), rows("abx", id=[1, 2, 2])
    assert (found(apart, kept), found(apart, lost)) == (at_end("012"), set())
    assert (found(united, kept), found(united, lost)) == (set(), at_end("012"))


def test_11_4_products_combine_equal_outputs():
    left = automaton(Transition(0, 1, A, labels=MARK), Transition(1, 2, B, labels=MARK), final={2})
    right = automaton(Transition(0, 1, A), Transition(1, 2, B, labels=MARK), final={2})
    assert found(left, rows("ab")) & found(right, rows("ab")) == set()
    # The printed product marks where both do, which neither reports for the whole.
    printed = automaton(Transition(0, 1, A, labels=MARK & SKIP), Transition(1, 2, B, labels=MARK & MARK), final={2})
    assert found(printed, rows("ab")) == at_end("1")


def test_11_5_star_does_not_empty_the_registers():
    other = Not(Satisfied(same(TYPE, 0)))
    once = automaton(Transition(0, 1, TRUE, (other,), MARK, (write(0, TYPE),)), final={1}, registers=1)
    star = automaton(
        Transition(0, 1, TRUE, (other,), MARK, (write(0, TYPE),)),
        Transition(1, 1, TRUE, (other,), MARK, (write(0, TYPE),)),
        final={1},
        registers=1,
    )
    assert found(once, rows("a")) == at_end("0")
    assert (1, frozenset({0, 1})) not in found(star, rows("aa"))
    assert (1, frozenset({0, 1})) in found(star, rows("ab"))


#: A B, and up to two events later an S of the same id, unrolled for a window of 3 events (003 §4, 11.9).
NONDETERMINISTIC = automaton(
    Transition(0, 0),
    Transition(0, 1, TypeTest("B"), labels=MARK, writes=(write(0),)),
    Transition(1, 3, S, (same(ID, 0),), MARK),
    Transition(1, 2),
    Transition(2, 3, S, (same(ID, 0),), MARK),
    final={3},
    registers=1,
)
#: Determinised with the loop on its start: states 0 {s}, 1 {s, f}, 2 {s, f, ft}, 3 {s, ft}, 4 with a final one.
DETERMINISTIC = automaton(
    Transition(0, 1, TypeTest("B"), labels=MARK, writes=(write(0),)),
    Transition(0, 0, Not(TypeTest("B"))),
    Transition(1, 2, TypeTest("B"), labels=MARK, writes=(write(0),)),
    Transition(1, 4, S, (same(ID, 0),), MARK),
    Transition(1, 3, S, (Not(same(ID, 0)),)),
    Transition(2, 2, TypeTest("B"), labels=MARK, writes=(write(0),)),
    Transition(2, 4, S, (same(ID, 0),), MARK),
    Transition(2, 3, S, (Not(same(ID, 0)),)),
    Transition(3, 2, TypeTest("B"), labels=MARK, writes=(write(0),)),
    Transition(3, 4, S, (same(ID, 0),), MARK),
    Transition(3, 0, S, (Not(same(ID, 0)),)),
    final={4},
    registers=1,
)


def test_11_9_determinising_with_the_loop_loses_matches():
    stream = rows("BBS", id=[1, 2, 1])
    assert found(NONDETERMINISTIC, stream) == at_end("02")
    assert found(DETERMINISTIC, stream) == set()
    # One candidate at a time is found by both.
    assert found(DETERMINISTIC, rows("BS", id=[1, 1])) == found(NONDETERMINISTIC, rows("BS", id=[1, 1])) == at_end("01")


def test_11_10_the_deterministic_automaton_marks_dead_candidates():
    stream = rows("BBS", id=[2, 1, 1])
    assert found(NONDETERMINISTIC, stream) == at_end("12")
    assert found(DETERMINISTIC, stream) == at_end("012")
    assert len(list(accepting_runs(DETERMINISTIC, Stream.from_dicts(stream)))) == 1


def test_11_12_accepting_runs_go_on():
    transducer = automaton(
        Transition(0, 1, A, labels=MARK), Transition(1, 2, B, labels=MARK), Transition(2, 2, B, labels=MARK), final={2}
    )
    assert found(transducer, rows("abb")) == at_end("01", "012")
