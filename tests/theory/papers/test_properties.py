"""What the constructions promise (register transducers §8), on random expressions and strings."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cerflow.automata import (
    StaggeredCopies,
    accepting_runs,
    accepts,
    compile_sremo,
    complement,
    complete,
    concatenate,
    construct_minterms,
    determinize_windowed,
    difference,
    eliminate_epsilon,
    intersect,
    is_deterministic,
    is_register_safe,
    iterate,
    matches,
    overlaps,
    reported_matches,
    restrict_to_window,
    runs,
    staggered,
    streaming,
    subset_construction,
    to_single_register,
    union,
    unroll,
    with_start_loop,
)
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream, support
from cerflow.language.sremo import Alternation, Concatenation, Star
from cerflow.theory.papers.model.conditions import holds
from cerflow.theory.semantics.sremo import sremo_match_string, sremo_matches
from support.generators.sremo import conditions, strings
from support.generators.sremo import streams as timed_streams
from support.register_automata import compiled, concatenated
from support.runners import examples

SEVERAL = st.lists(strings(5), min_size=1, max_size=3)
MOST = 5_000


def stream(rows):
    return Stream.from_dicts(rows)


@examples(150)
@given(compiled(3), SEVERAL)
def test_compiled_expressions_match_what_they_denote(case, several):
    """Theorem 27; Lemma 29; one register to a transition."""
    expression, t = case
    free = eliminate_epsilon(t)
    single = to_single_register(free)
    assert free.is_epsilon_free
    assert all(len(edge.writes) <= 1 for edge in single.transitions)
    assert len(single.registers) <= len(t.registers) + 1  # the one that is never written
    assert len(single.written) <= len(t.registers)
    for events in map(stream, several):
        expected = sremo_match_string(expression, events)
        assert matches(t, events) == expected
        assert matches(free, events) == expected
        assert matches(single, events) == expected
        assert matches(free.trimmed().renumbered(), events) == expected
        assert accepts(t, events) is bool(expected)
        assert {run.complex_event for run in accepting_runs(free, events)} == expected


@examples(60)
@given(compiled(2), strings(4))
def test_all_runs(case, rows):
    """Each transition of a run may be taken by the configurations beside it, and no run is missing."""
    _, t = case
    free = eliminate_epsilon(t)
    events = stream(rows)
    found = list(runs(free, events))
    for run in found:
        assert run.end == len(run.transitions) == len(run.configurations) - 1
        held = {}
        for position, (edge, before) in enumerate(zip(run.transitions, run.configurations)):
            assert before.registers == held
            assert (before.index, before.state) == (position, edge.source)
            assert holds(edge.condition, events[position], held)
            held = {**held, **dict.fromkeys(edge.writes, events[position])}
        assert run.configurations[-1].registers == held

    def extended(path, held):
        yield path
        if len(path) < len(events):
            for edge in free.leaving(path[-1].target if path else free.start):
                if holds(edge.condition, events[len(path)], held):
                    yield from extended((*path, edge), {**held, **dict.fromkeys(edge.writes, events[len(path)])})

    assert [run.transitions for run in found] == list(extended((), {}))
    whole = [run for run in found if run.end == len(events) and run.configurations[-1].state in free.finals]
    assert list(accepting_runs(free, events)) == whole


@examples(150)
@given(compiled(3, timed=True), timed_streams(5))
def test_windows_of_time_and_of_attributes(case, rows):
    expression, t = case
    events = Stream.from_dicts(rows, time="t")
    assert matches(t, events) == sremo_match_string(expression, events)
    assert reported_matches(streaming(eliminate_epsilon(t)), events) == sremo_matches(expression, events)


@examples(100)
@given(compiled(2), strings(5))
def test_streams(case, rows):
    """A match of T in S[m…k] is one of the streaming transducer in S[0…k]."""
    expression, t = case
    events = stream(rows)
    expected = sremo_matches(expression, events)
    assert reported_matches(streaming(t), events) == expected
    free = eliminate_epsilon(t)
    if all(edge.target != free.start for edge in free.transitions):
        assert reported_matches(with_start_loop(free), events) == expected


@examples(100)
@given(compiled(2), compiled(2), strings(5))
def test_union_and_intersection(one, other, rows):
    (e, left), (f, right) = one, other
    events = stream(rows)
    found, also = matches(left, events), matches(right, events)
    assert matches(union(left, right), events) == found | also
    both = intersect(eliminate_epsilon(left), eliminate_epsilon(right))
    assert matches(both, events) == found & also
    assert matches(union(left, right), events) == sremo_match_string(Alternation(e, f), events)


@examples(100)
@given(compiled(2), compiled(2), strings(5))
def test_concatenation(one, other, rows):
    (e, left), (f, right) = one, other
    events = stream(rows)
    # Registers are set apart, so that what the second reads was written by itself.
    expected = {
        concatenated(first, second, split)
        for split in range(len(events) + 1)
        for first, second in product(matches(left, events[:split]), matches(right, events[split:]))
    }
    assert matches(concatenate(left, right), events) == expected
    if not set(left.written) & set(right.read):
        assert sremo_match_string(Concatenation(e, f), events) == expected


@examples(100)
@given(compiled(2), strings(5))
def test_star(case, rows):
    expression, t = case
    events = stream(rows)
    assert matches(iterate(t), events) == sremo_match_string(Star(expression), events)
    assume(is_register_safe(t.trimmed()))
    # Definition 30, in which every repetition begins with empty registers (erratum 11.5).
    found = {0: {frozenset()}}
    for end in range(1, len(events) + 1):
        found[end] = {
            concatenated(first, second, start)
            for start in range(end)
            for first, second in product(found[start], matches(t, events[start:end]))
        }
    assert matches(iterate(t), events) == found[len(events)]


@examples(100)
@given(compiled(2), st.integers(1, 5), strings(5))
def test_windows(case, window, rows):
    _, t = case
    events = stream(rows)
    everything = matches(t, events)
    inside = {m for m in everything if not m or max(support(m)) - min(support(m)) < window}
    assert matches(restrict_to_window(t, window), events) == inside
    assert matches(restrict_to_window(eliminate_epsilon(t), window), events) == inside
    if window >= len(events):
        assert inside == everything


def _unrolled(t, window, prune=True):
    free = eliminate_epsilon(t)
    try:
        return free, unroll(to_single_register(free), window, prune=prune, most=MOST)
    except UnsupportedQueryError:
        assume(False)


@examples(100)
@given(compiled(2), st.integers(0, 4), st.booleans(), SEVERAL)
def test_unrolling(case, window, prune, several):
    _, t = case
    free, unrolled = _unrolled(t, window, prune)
    tree = unrolled.transducer
    entered = Counter(edge.target for edge in tree.transitions)
    assert set(entered) == tree.states - {tree.start}
    assert set(entered.values()) <= {1}
    assert set(Counter(r for edge in tree.transitions for r in edge.writes).values()) <= {1}
    for events in map(stream, several):
        assert matches(tree, events) == (matches(free, events) if len(events) <= window else frozenset())


@examples(60)
@given(compiled(2), st.integers(0, 4), strings(4))
def test_copies_of_registers(case, window, rows):
    """Of the runs of the tree and of the transducer, those of one walk hold the same (§4.7)."""
    _, t = case
    _, unrolled = _unrolled(t, window, prune=False)
    whole = to_single_register(eliminate_epsilon(t))
    events = stream(rows)[:window]
    tree = unrolled.transducer
    # With all states final, every run over the string is an accepting one.
    found = Counter()
    for run in accepting_runs(replace(tree, finals=tree.states), events):
        latest = {}
        for edge in run.transitions:
            for register in edge.writes:
                latest.update(dict.fromkeys(unrolled.registers_of[register], register))
        contents = dict(zip(tree.registers, run.configurations[-1].contents))
        held = tuple(contents[latest[r]] if r in latest else None for r in whole.registers)
        found[unrolled.state_of[run.configurations[-1].state], held] += 1
    expected = Counter(
        (run.configurations[-1].state, run.configurations[-1].contents)
        for run in accepting_runs(replace(whole, finals=whole.states), events)
    )
    assert found == expected


@examples(100)
@given(compiled(2), st.integers(0, 3), SEVERAL)
def test_determinisation(case, window, several):
    _, t = case
    _, unrolled = _unrolled(t, window)
    tree = unrolled.transducer
    try:
        subsets = subset_construction(tree, most=MOST)
        whole = complete(subsets)
        other = complement(subsets)
    except UnsupportedQueryError:
        assume(False)
    assert is_deterministic(subsets)
    assert determinize_windowed(t, window) == subsets
    for events in map(stream, several):
        accepted = len(events) <= window and accepts(t, events)
        assert accepts(subsets, events) is accepted
        assert accepts(whole, events) is accepted
        assert accepts(other, events) is not accepted
        # One run over every string, since the sink is there.
        (run,) = accepting_runs(replace(subsets, finals=subsets.states), events)
        last = run.configurations[-1]
        contents = dict(zip(subsets.registers, last.contents))
        for single in accepting_runs(replace(tree, finals=tree.states), events):
            end = single.configurations[-1]
            assert end.state in last.state
            for register, index in zip(tree.registers, end.contents):
                assert index is None or contents[register] == index


@examples(60)
@given(compiled(2), st.integers(1, 3), strings(3))
def test_double_complement(case, window, rows):
    _, t = case
    events = stream(rows)
    try:
        once = complement(determinize_windowed(t, window, most=MOST))
    except UnsupportedQueryError:
        assume(False)
    twice = complement(once)
    assert accepts(twice, events) is not accepts(once, events)
    assert accepts(twice, events) is (len(events) <= window and accepts(t, events))


@examples(60)
@given(compiled(2), compiled(2), st.integers(1, 2), strings(4))
def test_de_morgan(one, other, window, rows):
    (_, left), (_, right) = one, other
    events = stream(rows)
    try:
        neither = complement(determinize_windowed(union(left, right), window, most=MOST))
        no_left, no_right = (complement(determinize_windowed(t, window, most=MOST)) for t in (left, right))
        assert accepts(neither, events) is accepts(intersect(no_left, no_right), events)
    except UnsupportedQueryError:
        assume(False)


@examples(100)
@given(compiled(2), st.integers(1, 3), strings(7))
def test_staggered_copies(case, window, rows):
    """A match of at most w events ends where some copy is in a final state (C51)."""
    _, t = case
    events = stream(rows)
    try:
        copies = StaggeredCopies(determinize_windowed(t, window, most=MOST), window)
    except UnsupportedQueryError:
        assume(False)
    expected = [
        n
        for n in range(len(events))
        if any(accepts(t, events[m : n + 1]) for m in range(max(0, n - window + 1), n + 1))
    ]
    assert copies.detections(events) == expected
    _, unrolled = _unrolled(t, window)
    try:
        whole = staggered(unrolled.transducer, window, most=MOST)
    except UnsupportedQueryError:
        assume(False)
    assert is_deterministic(whole)
    # The copies may also end where they began; the automaton reads an event at least.
    some = [n for n in range(len(events)) if accepts(whole, events[: n + 1])]
    assert some == expected


@examples(200)
@given(st.lists(conditions(), max_size=5), strings(3), st.data())
def test_minterms(wanted, rows, data):
    """Whatever the event and the registers, exactly one of them holds."""
    assume(rows)
    minterms = construct_minterms(wanted)
    everything = construct_minterms(wanted, satisfiable=False)
    assert set(minterms) <= set(everything)
    events = stream(rows)
    held = {r: data.draw(st.sampled_from(events)) for r in data.draw(st.sets(st.sampled_from("rs")))}
    for among in (minterms, everything):
        (one,) = [m for m in among if holds(m.condition, events[0], held)]
        assert all(one.entails(c) is holds(c, events[0], held) for c in wanted)


@examples(100)
@given(compiled(2), strings(4))
def test_deterministic_automata_have_one_run(case, rows):
    _, t = case
    free = eliminate_epsilon(t)
    assume(next(overlaps(free), None) is None)
    runs = list(accepting_runs(replace(free, finals=free.states), stream(rows)))
    assert len({run.configurations for run in runs}) <= 1


@examples(60)
@given(compiled(2), compiled(2), st.booleans(), strings(3))
def test_differences(one, other, slightly, rows):
    """A difference that is found is one; where there is none, none is found on a random string."""
    first, second = one[1], other[1]
    if slightly:
        second = union(first, intersect(eliminate_epsilon(first), eliminate_epsilon(second)))
    try:
        answer = difference(first, second)
        assert not difference(first, first).exists
    except UnsupportedQueryError:
        assume(False)
    if answer.witness is None:
        assert answer.exists is not True
        events = stream(rows)
        assert answer.exists is None or matches(first, events) == matches(second, events)
    else:
        witness = answer.witness
        events = stream(witness.events)
        found = [witness.complex_event in matches(t, events) for t in (first, second)]
        assert found == [witness.side == 0, witness.side == 1]


@examples(40)
@given(compiled(2), st.integers(1, 3), SEVERAL)
def test_marks_of_all_candidates(case, window, several):
    """003 §4.8: the run of the deterministic automaton marks at least what all matches mark together."""
    _, t = case
    try:
        marking = determinize_windowed(t, window, marking=True, most=MOST)
    except UnsupportedQueryError:
        assume(False)
    for events in map(stream, several):
        if len(events) <= window:
            together = frozenset().union(*matches(t, events))
            assert all(together <= marks for marks in matches(marking, events))
            assert bool(matches(marking, events)) is accepts(t, events)


@examples(60)
@given(compiled(2), strings(4))
def test_without_output(case, rows):
    """The SRA accepts the same strings, and marks nothing."""
    _, t = case
    events = stream(rows)
    silent = t.without_output()
    assert accepts(silent, events) is accepts(t, events)
    assert matches(silent, events) <= {frozenset()}


def test_compile_gives_the_same_value_every_time():
    text = "any([type = 'A'] MARK INTO r, [v > r.v] MARK)+ | ![type = 'B'] . [TRUE] MARK"
    assert compile_sremo(text) == compile_sremo(text)
    assert eliminate_epsilon(compile_sremo(text)) == eliminate_epsilon(compile_sremo(text))


def test_differences_with_registers():
    """A tree and its determinisation accept the same strings; with another condition they do not (004 §6)."""
    pytest.importorskip("z3", reason="the extra 'decide' is not installed")
    rising, falling = (
        eliminate_epsilon(compile_sremo(f"[type = 'A'] INTO r . [v {sign} r.w] MARK")) for sign in (">", "<")
    )
    tree, deterministic = unroll(rising, 2).transducer, determinize_windowed(rising, 2)
    assert difference(tree.without_output(), deterministic).exists is False
    assert difference(tree, rising).exists is False
    for other in (falling, unroll(falling, 2).transducer):
        witness = difference(rising, other).witness
        events = stream(witness.events)
        found = [witness.complex_event in matches(t, events) for t in (rising, other)]
        assert found == [witness.side == 0, witness.side == 1]
    everything = compile_sremo("[TRUE]+")
    # A deterministic automaton is universal if it does not differ from this one.
    assert difference(deterministic, everything).exists
    complete = compile_sremo("[TRUE]+ | ([type = 'A'] INTO r . [v > r.w] . [TRUE]*)")
    assert difference(eliminate_epsilon(complete), everything).exists is not True


def test_differences_are_shown_by_readable_texts():
    pytest.importorskip("z3", reason="the extra 'decide' is not installed")
    one, other = (compile_sremo(f"[type = 'A'] MARK INTO r . [v {sign} r.v] MARK") for sign in (">", ">="))
    (_, second) = difference(one, other).witness.events
    assert second["type"].isprintable()
    between = compile_sremo("[s > 'a'] MARK INTO r . [s > r.s AND s < 'b'] MARK")
    first, second = difference(between, compile_sremo("[FALSE]")).witness.events
    assert "a" < first["s"] < second["s"] < "b"
    assert (first["s"] + second["s"]).isprintable()
