"""Constructions on the models that they are defined for; other models are refused with a way out."""

from dataclasses import replace

import pytest

import cerflow
from cerflow import automata as a
from support.register_automata import E1

SRT = a.eliminate_epsilon(a.compile_sremo(E1)).renumbered()
RMA = a.as_register_match_automaton(SRT)
UCEA = a.compile_cel("A AS x ; B")
CEA = a.as_complex_event_automaton(UCEA)

ONE = (
    *("complement", "complete", "eliminate_epsilon", "is_deterministic", "is_determinizable", "iterate", "kinds"),
    *("minimize", "streaming", "subset_construction", "to_single_register", "with_start_loop"),
)
WINDOWED = ["complement_windowed", "determinize_windowed", "restrict_to_window", "unroll"]
TWO = ["concatenate", "intersect", "set_apart", "union"]


def arguments(name, automaton):
    return (automaton, automaton) if name in TWO else (automaton, 3) if name in WINDOWED else (automaton,)


def result(name, automaton):
    """What a construction gives, or the error that it raises."""
    try:
        return getattr(a, name)(*arguments(name, automaton))
    except a.AutomatonError as error:
        return type(error)


@pytest.mark.parametrize("name", [*ONE, *WINDOWED, *TWO])
def test_an_rma_is_taken_as_an_srt(name):
    expected, found = result(name, SRT), result(name, RMA)
    assert expected is not a.TransitionKindError
    if isinstance(expected, a.Unrolled):
        expected = replace(expected, transducer=a.as_register_match_automaton(expected.transducer))
    if isinstance(expected, a.SymbolicRegisterTransducer):
        expected = a.as_register_match_automaton(expected)
    assert found == expected


@pytest.mark.parametrize(
    ("names", "refused", "way"),
    [
        (
            "eliminate_epsilon is_determinizable kinds streaming subset_construction",
            (CEA, UCEA),
            "SRT",
        ),
        ("subset_construction to_single_register with_start_loop", (CEA, UCEA), "SRT"),
        ("complement_windowed determinize_windowed unroll", (CEA, UCEA), "SRT"),
        ("select_strict select_next select_last select_max with_marked_ends", (UCEA, RMA, SRT), "CEA"),
        ("io_determinize io_complement is_io_deterministic with_star_runs", (RMA, SRT), "UCEA"),
    ],
)
def test_other_models_are_refused(names, refused, way):
    hint = {"SRT": "as_transducer", "CEA": "as_complex_event_automaton", "UCEA": "as_unary_automaton"}[way]
    for name in names.split():
        for automaton in refused:
            with pytest.raises(a.TransitionKindError, match=rf"{name} takes .*, not an? .*; .*{hint}\(…\) makes one"):
                getattr(a, name)(*arguments(name, automaton))


def test_two_models_do_not_mix():
    with pytest.raises(a.TransitionKindError, match="union takes automata of one model, not a CEA and a UCEA"):
        a.union(CEA, UCEA)
    assert a.union(RMA, SRT) == a.as_register_match_automaton(a.union(SRT, SRT))
    with pytest.raises(a.AutomatonError, match="enters the start state"):
        a.with_start_loop(a.with_start_loop(SRT))


@pytest.mark.parametrize(
    "use",
    [
        lambda: a.union(3, CEA),
        lambda: a.select_next(None),
        lambda: a.unroll(SRT, "3"),
        lambda: a.determinize_windowed(SRT, 2.5),
        lambda: a.restrict_to_window(CEA, "3"),
        lambda: cerflow.Query.from_automaton("A ; B"),
        lambda: a.reported_matches(CEA, 3),
    ],
)
def test_what_is_no_automaton_window_or_stream_is_refused(use):
    with pytest.raises(cerflow.CerflowError, match=r"not ('3'|'A ; B'|3|None|2\.5) of type"):
        use()
