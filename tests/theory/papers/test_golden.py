"""The worked examples of the papers (register transducers §6), with sizes where the figures show them."""

from itertools import product

import pytest

from cerflow.automata import (
    MARKED,
    SKIPPED,
    NotDeterminizableError,
    Stream,
    SymbolicRegisterTransducer,
    accepting_runs,
    accepts,
    compile_cepl,
    compile_sremo,
    complement,
    construct_minterms,
    determinize_windowed,
    eliminate_epsilon,
    is_deterministic,
    is_register_safe,
    kinds,
    matches,
    overlaps,
    registers_of,
    reported_matches,
    streaming,
    subset_construction,
    unroll,
    unsafe_reads,
    with_start_loop,
)
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.theory.papers.constructions.determinize import unchecked_subsets
from cerflow.theory.papers.model.conditions import not_satisfied
from support.golden import SIX
from support.register_automata import E1, E2, FIGURE_4, TABLE_1, condition, edge, supports, word


def size(t):
    return len(t.states), len(t.transitions), len(t.registers)


def epsilons(t):
    return sum(t.condition is None for t in t.transitions)


# --- 004 -------------------------------------------------------------------------------------------------------------


def test_equation_2_and_figure_1():
    e1 = compile_sremo(E1)
    assert registers_of(E1) == ("r1",)
    assert size(e1) == (8, 9, 1)
    assert epsilons(e1) == 6
    free = eliminate_epsilon(e1)
    assert size(free) == (4, 5, 1)
    found = {k: supports(matches(free, TABLE_1[:k])) for k in range(1, 7)}
    assert found == {1: set(), 2: set(), 3: set(), 4: {frozenset((0, 3))}, 5: {frozenset((0, 4))}, 6: set()}
    runs = list(accepting_runs(free, TABLE_1[:4]))
    assert [[c.contents for c in run.configurations] for run in runs] == [[(None,), (0,), (0,), (0,), (0,)]]


@pytest.mark.parametrize("stream", [streaming, lambda t: with_start_loop(eliminate_epsilon(t))])
def test_equation_2_over_a_stream(stream):
    found = supports(reported_matches(stream(compile_sremo(E1)), TABLE_1))
    assert found == {(k, frozenset((b, k))) for k in (3, 4) for b in (0, 1)}


@pytest.mark.parametrize(
    ("window", "expected"),
    [(2, set()), (3, {(1, 3)}), (4, {(0, 3), (1, 3), (1, 4)}), (5, {(0, 3), (1, 3), (0, 4), (1, 4)})],
)
def test_example_40(window, expected):
    t = streaming(compile_sremo(f"({E1}) WITHIN {window} EVENTS"))
    assert {tuple(sorted(m)) for _, m in supports(reported_matches(t, TABLE_1))} == expected


def test_equation_4_and_figure_3():
    e2 = compile_sremo(E2)
    assert size(e2) == (8, 8, 1)
    assert epsilons(e2) == 5
    assert size(eliminate_epsilon(e2)) == (4, 4, 1)
    prices = [("B", 1, 5), ("S", 1, 7), ("B", 2, 600), ("S", 2, 9), ("B", 3, 50), ("S", 3, 9), ("B", 4, 5), ("S", 5, 9)]
    events = Stream.from_dicts([{"type": t, "id": i, "price": p} for t, i, p in prices])
    assert supports(reported_matches(streaming(e2), events)) == {(1, frozenset((0, 1))), (3, frozenset((2, 3)))}


@pytest.mark.parametrize(
    ("types", "ids", "accepted"),
    [("BS", (1, 2), False), ("BBS", (1, 3, 2), False), ("BBS", (2, 3, 2), True)],
)
def test_figure_4_is_an_acceptor(types, ids, accepted):
    assert accepts(FIGURE_4, word(types, ids)) is accepted


def test_figure_4_remembers_any_of_any_number():
    for k in range(1, 6):
        for ids in product((1, 2), repeat=k):
            assert accepts(FIGURE_4, word("B" * k + "S", [*ids, 2])) is (2 in ids)


def test_figure_4_cannot_be_determinised():
    with pytest.raises(NotDeterminizableError, match="unroll the automaton"):
        subset_construction(FIGURE_4)
    assert not is_deterministic(FIGURE_4)
    pairs = {frozenset((a.target, b.target)) for a, b in overlaps(FIGURE_4)}
    assert pairs == {frozenset(("qs", "q1")), frozenset(("q1", "qf"))}


@pytest.mark.parametrize(("window", "pruned", "whole"), [(1, 1, 3), (2, 3, 7), (3, 8, 13), (4, 15, 21), (5, 24, 31)])
def test_figure_5a_sizes(window, pruned, whole):
    few, all_ = unroll(FIGURE_4, window).transducer, unroll(FIGURE_4, window, prune=False).transducer
    assert size(few) == (pruned, pruned - 1, window - 1)
    assert size(all_) == (whole, whole - 1, window)


def test_figure_5a():
    unrolled = unroll(FIGURE_4, 3)
    name = {state: "".join(q[1:] for q in unrolled.walk(state)) for state in unrolled.transducer.states}
    assert set(name.values()) == {"s", "ss", "ss1", "ss1f", "s1", "s11", "s11f", "s1f"}
    assert {name[q] for q in unrolled.transducer.finals} == {"ss1f", "s11f", "s1f"}
    edges = {(name[t.source], name[t.target]): (t.reads, sorted(t.writes)) for t in unrolled.transducer.transitions}
    r2, r1 = edges["s", "s1"][1] + edges["ss", "ss1"][1]
    assert {r1, r2} == set(unrolled.transducer.registers)
    assert unrolled.registers_of == {r1: {"r"}, r2: {"r"}}
    assert edges == {
        ("s", "ss"): ((), []),
        ("ss", "ss1"): ((), [r1]),
        ("ss1", "ss1f"): ((r1,), []),
        ("s", "s1"): ((), [r2]),
        ("s1", "s11"): ((), []),
        ("s11", "s11f"): ((r2,), []),
        ("s1", "s1f"): ((r2,), []),
    }
    assert is_deterministic(unroll(FIGURE_4, 2).transducer)


def test_find_last_appearance():
    """A copy stands for what was written last on the way, register by register."""
    t = eliminate_epsilon(
        compile_sremo("[TRUE] INTO r . [TRUE] INTO s . ([id > s.id] INTO r)? . [id = r.id AND id != s.id] MARK")
    )
    tree = unroll(t, 4).transducer
    assert sorted(edge.reads for edge in tree.transitions if len(edge.reads) == 2) == [("r1", "r2"), ("r3", "r2")]
    for ids in product((1, 2, 3), repeat=4):
        for length in (3, 4):
            events = word("xxxx"[:length], ids[:length])
            assert matches(tree, events) == matches(t, events)
    assert accepts(tree, word("xxx", (1, 2, 1)))
    assert accepts(tree, word("xxxx", (1, 2, 3, 3)))
    assert not accepts(tree, word("xxxx", (1, 2, 3, 1)))


def test_figure_5b():
    unrolled = unroll(FIGURE_4, 3)
    name = {q: "".join(p[1:] for p in unrolled.walk(q)) for q in unrolled.transducer.states}
    (r1,) = next(t.writes for t in unrolled.transducer.transitions if name[t.target] == "ss1")
    (r2,) = next(t.writes for t in unrolled.transducer.transitions if name[t.target] == "s1")
    whole = subset_construction(unrolled.transducer, satisfiable=False)
    b = condition("type = 'B'")
    s1, s2 = (condition(f"type = 'S' AND id = {r}.id") for r in (r1, r2))

    def named(states):
        return " ".join(sorted(name[q] for q in states))

    # In the determinised tree a condition is a conjunction of positive and negative ones.
    found = [
        (named(t.source), set(conjuncts(t.condition)), named(t.target), sorted(t.writes)) for t in whole.transitions
    ]

    def seen(source, *conditions):
        wanted = {part for c in conditions for part in conjuncts(c)}
        return [(target, writes) for origin, parts, target, writes in found if (origin, parts) == (source, wanted)]

    n = not_satisfied
    assert seen("s", n(b)) == [("ss", [])]
    assert seen("s", b) == [("s1 ss", [r2])]
    assert seen("ss", b) == [("ss1", [r1])]
    assert seen("ss1", s1) == [("ss1f", [])]
    assert seen("s1 ss", b, s2) == [("s11 s1f ss1", [r1])]
    assert seen("s1 ss", b, n(s2)) == [("s11 ss1", [r1])]
    assert seen("s1 ss", n(b), s2) == [("s11 s1f", [])]
    assert seen("s1 ss", n(b), n(s2)) == [("s11", [])]
    final = set(map(named, whole.finals))
    assert {"s11 s1f ss1", "s11 s1f"} <= final
    assert "s11 ss1" not in final


@pytest.mark.parametrize(
    ("window", "prune", "sizes"),
    [
        (2, True, (4, 6)),
        (3, True, (12, 26)),
        (4, True, (34, 120)),
        (2, False, (10, 15)),
        (3, False, (28, 57)),
        (4, False, (82, 243)),
    ],
)
def test_sizes_of_determinised_trees(window, prune, sizes):
    tree = unroll(FIGURE_4, window, prune=prune).transducer
    syntactic = subset_construction(tree, satisfiable=False)
    assert (len(syntactic.states), len(syntactic.transitions)) == sizes
    # Minterms that no event satisfies, type B and S together among them, are left out where they are seen.
    fewer = subset_construction(tree)
    assert fewer.states <= syntactic.states
    assert len(fewer.transitions) <= sizes[1]
    assert is_deterministic(fewer)
    assert is_deterministic(syntactic)


def test_figure_12_and_its_complement():
    """The last event has the type of an earlier one; that all types differ needs unbounded memory."""
    whole = SymbolicRegisterTransducer.of(
        [edge("qs", "qs", "TRUE"), edge("qs", "q1", "TRUE", "•", "r1"), edge("q1", "q1", "TRUE"),
         edge("q1", "qf", "type = r1.type", "•")],
        start="qs", finals=["qf"],
    )  # fmt: skip
    for types, accepted in (("aba", True), ("abc", False), ("aab", False)):
        assert accepts(whole, word(types)) is accepted
    assert {n for n, _ in reported_matches(whole, word("aab"))} == {1}
    other = complement(determinize_windowed(whole, 3))
    for types in map("".join, product("abc", repeat=3)):
        assert accepts(other, word(types)) is (types[2] not in types[:2])


def test_figure_14():
    one, two, three = (condition(f"p{k} = 1") for k in (1, 2, 3))
    whole = SymbolicRegisterTransducer.of(
        [edge("q0", "q1", "TRUE"), edge("q0", "q4", "TRUE"),
         edge("q1", "q2", "p1 = 1"), edge("q1", "q3", "p2 = 1"), edge("q4", "q5", "p3 = 1")],
        start="q0", finals=["q5"],
    )  # fmt: skip
    minterms = construct_minterms([one, two, three])
    assert len(minterms) == 8
    targets = {
        m.condition: frozenset(q for q, c in (("q2", one), ("q3", two), ("q5", three)) if m.entails(c))
        for m in minterms
    }
    whole_subsets = subset_construction(whole)
    found = {t.condition: t.target for t in whole_subsets.transitions if t.source == frozenset(("q1", "q4"))}
    assert found == targets
    signs = {
        frozenset(q[1:] for q in targets[m.condition]): tuple(c in m.positive for c in (one, two, three))
        for m in minterms
    }
    assert signs == {
        frozenset("23"): (True, True, False),
        frozenset("2"): (True, False, False),
        frozenset("3"): (False, True, False),
        frozenset(): (False, False, False),
        frozenset("235"): (True, True, True),
        frozenset("5"): (False, False, True),
        frozenset("25"): (True, False, True),
        frozenset("35"): (False, True, True),
    }


OVERWRITTEN = "[type = 'B'] MARK INTO r1+ . [type = 'S' AND id = r1.id] MARK"


def test_table_4():
    """Equation 11: a register that is written again holds the last event only."""
    events = word("BBBSBS")
    t = streaming(compile_sremo(OVERWRITTEN))
    expected = {(3, frozenset(range(m, 4))) for m in range(3)} | {(5, frozenset((4, 5)))}
    assert supports(reported_matches(t, events)) == expected
    assert supports(matches(compile_sremo(OVERWRITTEN), word("BBS", (7, 1, 1)))) == {frozenset((0, 1, 2))}
    assert not accepts(compile_sremo(OVERWRITTEN), word("BBS", (1, 7, 1)))
    again = streaming(compile_sremo(f"({OVERWRITTEN})+"))
    assert supports(reported_matches(again, events)) == expected | {(5, frozenset(range(m, 6))) for m in range(3)}


def test_a_streaming_regular_expression():
    t = streaming(compile_sremo("[type = 'a'] . [type = 'b'] MARK"))
    assert {n for n, _ in reported_matches(t, word("abcabc"))} == {1, 4}


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("next([type = 'a'] MARK, [type = 'b'] MARK)", "abbb", {(0, 1)}),
        ("next([type = 'a'] MARK, [type = 'b'] MARK)", "axb", {(0, 2)}),
        ("any([type = 'a'] MARK, [type = 'b'] MARK)", "abbb", {(0, 1), (0, 2), (0, 3)}),
    ],
)
def test_strategies(text, types, expected):
    found = supports(reported_matches(streaming(compile_sremo(text)), word(types)))
    assert {tuple(sorted(m)) for _, m in found} == expected


# --- 003 -------------------------------------------------------------------------------------------------------------

SENSORS = Stream.from_dicts(SIX)
SAME_SENSOR = "(T AS x ; H AS y) FILTER x.id = y.id"


def test_figure_1_of_003():
    whole = compile_cepl(SAME_SENSOR)
    assert size(whole) == (4, 5, 1)
    assert epsilons(whole) == 1
    assert sorted(t.selection for t in whole.transitions if t.parameters) == [("r1", "~")]
    assert [t.writes for t in whole.transitions if t.output and not t.parameters] == [{"r1"}]
    assert is_register_safe(whole)
    by_end = {}
    for n, match in supports(reported_matches(whole, SENSORS)):
        by_end.setdefault(n + 1, set()).add(tuple(sorted(match)))
    assert by_end == {4: {(0, 3), (1, 3)}, 5: {(0, 4), (1, 4)}}
    runs = [str(run) for run in accepting_runs(whole, SENSORS[:4])]
    # Run (4) of the paper; ε joins the two halves here.
    assert "[0, q0, ♯] –⊗→ [1, q0, ♯] –•→ [2, q1, 1] –ε→ [2, q2, 1] –⊗→ [3, q2, 1] –•→ [4, q3, 1]" in runs
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T AS x ; H AS y", {(a, b) for a in range(3) for b in (3, 4)}),
        (SAME_SENSOR, {(a, b) for a in range(2) for b in (3, 4)}),
        (
            "(T AS x)+ ; H AS y",
            {(*s, b) for b in (3, 4) for s in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]},
        ),
    ],
)
def test_table_1_of_003(text, expected):
    assert {tuple(sorted(m)) for _, m in supports(reported_matches(compile_cepl(text), SENSORS))} == expected


FIVE = "(((T AS x FILTER x.value < -40) OR (T AS x FILTER x.value > 50)) ; T AS y) FILTER y.id = x.id"


def test_figure_2_of_003():
    whole = compile_cepl(FIVE)
    assert size(whole) == (8, 11, 1)
    assert epsilons(whole) == 5
    loops = [t for t in whole.transitions if t.source == t.target]
    guarded = [t for t in whole.transitions if t.output]
    assert (len(loops), len(guarded)) == (3, 3)
    assert sorted(sorted(t.writes) for t in guarded) == [[], ["r1"], ["r1"]]
    assert [t.selection for t in guarded if not t.writes] == [("~", "r1")]
    assert reported_matches(whole, SENSORS) == frozenset()
    assert is_register_safe(whole)


def test_figure_3b_of_003():
    """The deterministic automaton for w = 2, with the loop on the start, which is sound that far (erratum 11.9)."""
    tree = unroll(
        SymbolicRegisterTransducer.of(
            [edge("qs", "qf", "type = 'T'", "•", "r"), edge("qf", "qff", "type = 'H' AND id = r.id", "•")],
            start="qs",
            finals=["qff"],
        ),
        2,
    ).transducer
    looped = with_start_loop(tree)
    whole = unchecked_subsets(looped, marking=True)
    f, other = condition("type = 'T'"), condition("type = 'H' AND id = r1.id")
    n = not_satisfied
    found = {(t.source, frozenset(conjuncts(t.condition))): (t.target, t.writes, t.output) for t in whole.transitions}
    s, sf, sff = frozenset((0,)), frozenset((0, 1)), frozenset((0, 2))
    written, parts = frozenset(("r1",)), frozenset(conjuncts(other))
    assert found == {
        (s, frozenset((f,))): (sf, written, MARKED),
        (s, frozenset((n(f),))): (s, frozenset(), SKIPPED),
        (sf, frozenset((f, n(other)))): (sf, written, MARKED),
        (sf, parts | {n(f)}): (sff, frozenset(), MARKED),
        (sf, frozenset((n(f), n(other)))): (s, frozenset(), SKIPPED),
        (sff, frozenset((f,))): (sf, written, MARKED),
        (sff, frozenset((n(f),))): (s, frozenset(), SKIPPED),
    }
    assert whole.finals == {sff}


def test_registers_that_may_be_empty():
    whole = SymbolicRegisterTransducer.of(
        [edge(0, 1, "TRUE", "•", "r"), edge(0, 1, "TRUE"), edge(1, 2, "id = r.id", "•")], start=0, finals=[2]
    )
    assert not is_register_safe(whole)
    assert [(t.target, r) for t, r in unsafe_reads(whole)] == [(2, "r")]
    assert whole.transitions[0].output == MARKED
    # A loop that reads before it has written is unsafe, one that writes first is not.
    loop = SymbolicRegisterTransducer.of(
        [edge(0, 1, "TRUE", "•", "r"), edge(1, 1, "id = r.id", "•", "r")], start=0, finals=[1]
    )
    assert is_register_safe(loop)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[type = 'a'] . [v > 1]*", {"symbolic automaton", "symbolic register automaton", "match automaton"}),
        ("[type = 'a'] MARK INTO r . [v > 1]", {"match automaton"}),
        ("[TRUE] INTO r . [v > r.v]", {"symbolic register automaton"}),
        ("[TRUE] INTO r . [v = r.v OR NOT w = r.w]", {"symbolic register automaton", "register automaton"}),
        ("[TRUE] MARK INTO r . [v = r.v]", set()),
    ],
)
def test_special_cases(text, expected):
    assert kinds(compile_sremo(text)) == expected
