"""Automata as values: what fits together and what does not, other names, and the way between the two models."""

import dataclasses
import pickle

import pytest
from hypothesis import given

from cerflow.automata import (
    HEAD,
    MARKED,
    AutomatonError,
    ComplexEventTransition,
    ConditionError,
    EpsilonFreeError,
    EpsilonTransitionError,
    LabelSetError,
    MatchTransition,
    MissingRegisterError,
    MissingStateError,
    RegisterMatchAutomaton,
    RegisterSelectionError,
    StateError,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    UnaryComplexEventTransition,
    accepting_runs,
    as_register_match_automaton,
    as_transducer,
    intersect,
    matches,
    show_state,
    subset_construction,
    to_single_register,
    unroll,
)
from cerflow.base.errors import CerflowError
from cerflow.base.events import Stream
from support.generators.sremo import strings
from support.register_automata import FIGURE_4, TABLE_1, compiled, condition, edge, supports, word
from support.runners import examples


def transducer(*transitions, states=frozenset(("p", "q")), start="p", finals=frozenset("q"), registers=("r",)):
    return SymbolicRegisterTransducer(
        states=states, start=start, finals=finals, transitions=transitions, registers=registers
    )


@pytest.mark.parametrize(
    ("parts", "fault", "message"),
    [
        ({"start": "s"}, MissingStateError, "the start state s is not among"),
        ({"finals": frozenset(("q", "s"))}, MissingStateError, "the final state s is not among"),
        ({"transitions": (edge("p", "s", "TRUE"),)}, MissingStateError, "has an end s that"),
        ({"transitions": (edge("s", "p", "TRUE"),)}, MissingStateError, "has an end s that"),
        ({"transitions": (edge("p", "q", "v = x.v"),)}, MissingRegisterError, "no register x"),
        ({"transitions": (edge("p", "q", "TRUE", "•", "x"),)}, MissingRegisterError, "no register x"),
        ({"transitions": (edge("p", "q", None, "•"),)}, EpsilonTransitionError, "neither write nor output"),
        ({"transitions": (edge("p", "q", None, "⊗", "r"),)}, EpsilonTransitionError, "neither write nor output"),
    ],
)
def test_faults(parts, fault, message):
    whole = transducer()
    with pytest.raises(fault, match=message) as caught:
        dataclasses.replace(whole, **parts)
    assert isinstance(caught.value, AutomatonError)
    assert isinstance(caught.value, CerflowError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r[v > 1]", r"as in r\.price, not of a bracket: r\[v > 1\]"),
        ("v > 0 AND v > prev(v)", "prev is not about the event read"),
        ("MATCH_NUMBER() > 1", "match_number is not about the event read"),
        ("SOME r: r.v > 1", "SOME has nothing to choose"),
        ("count(r) > 1", "count aggregates several events"),
        ("increasing(r.v)", "increasing aggregates several events"),
    ],
)
def test_conditions_are_about_the_event_read_and_registers(text, message):
    with pytest.raises(ConditionError, match=message):
        SymbolicTransition(source=0, target=1, condition=text)
    with pytest.raises(ConditionError, match=message):
        MatchTransition(source=0, target=1, formula=text, parameters=("r",), selection=("s",))


def test_names_and_marks_of_transitions():
    """A text is no set of names: its letters would be labels."""
    with pytest.raises(LabelSetError, match="the labels of a transition are a frozenset of names, not 'xy'"):
        SymbolicTransition(source=0, target=1, condition="TRUE", output="xy")
    with pytest.raises(LabelSetError, match=r"the registers of a transition are a frozenset of names, not \{'r'\}"):
        SymbolicTransition(source=0, target=1, condition="TRUE", writes={"r"})
    with pytest.raises(LabelSetError, match=r"frozenset of names, not frozenset\(\{3\}\)"):
        MatchTransition(source=0, target=1, formula="TRUE", output=frozenset({3}))
    with pytest.raises(LabelSetError, match="the labels of a transition are a frozenset"):
        UnaryComplexEventTransition(source=0, target=1, labels="H")
    with pytest.raises(LabelSetError, match=r"marks is True .* not '◦'"):
        ComplexEventTransition(source=0, target=1, marks="◦")


@pytest.mark.parametrize(
    ("parts", "fault", "message"),
    [
        ({"parameters": ("x",)}, RegisterSelectionError, r"selection \(\) for the parameters \(x\)"),
        ({"parameters": ("x", "x"), "selection": (HEAD, "r")}, RegisterSelectionError, "for the parameters"),
        ({"formula": condition("x.v > 1")}, RegisterSelectionError, "uses x, which is not a parameter"),
        ({"formula": None, "selection": (HEAD,)}, EpsilonTransitionError, "no register selection"),
    ],
)
def test_faults_of_register_selections(parts, fault, message):
    with pytest.raises(fault, match=message):
        MatchTransition(**{"source": 0, "target": 1, "formula": condition("v > 1"), **parts})


def test_a_selection_names_registers_of_the_automaton():
    t = MatchTransition(source=0, target=1, formula=condition("x.v > 1"), parameters=("x",), selection=("r",))
    whole = RegisterMatchAutomaton.of([t], starts=[0], finals=[1])
    assert whole.registers == ("r",)
    with pytest.raises(MissingRegisterError, match="no register r"):
        dataclasses.replace(whole, registers=())
    unused = dataclasses.replace(t, formula=condition("TRUE"))
    with pytest.raises(MissingRegisterError, match="no register r"):
        dataclasses.replace(whole, transitions=(unused,), registers=())


@pytest.mark.parametrize(
    "construction",
    [lambda t: unroll(t, 2), lambda t: intersect(t, t), to_single_register, subset_construction],
)
def test_constructions_that_need_automata_without_epsilon(construction):
    with pytest.raises(EpsilonFreeError):
        construction(transducer(edge("p", "q")))


def test_values():
    assert transducer(edge("p", "q", "v > 1")) == transducer(edge("p", "q", "v > 1"))
    assert transducer(edge("p", "q", "v > 1")) != transducer(edge("p", "q", "v > 2"))
    assert pickle.loads(pickle.dumps(FIGURE_4)) == FIGURE_4
    with pytest.raises(dataclasses.FrozenInstanceError):
        FIGURE_4.start = "q1"
    assert str(FIGURE_4) == "SRT: 3 states, 4 transitions, 1 registers"
    assert FIGURE_4.transitions[3].reads == ("r",)
    assert not transducer(edge("p", "q")).is_epsilon_free


def test_names_of_states():
    state = frozenset((frozenset(), ("a", 1), 10, 9))
    assert show_state(state) == "{∅, q9, q10, (a, q1)}"


def test_other_names():
    other = FIGURE_4.renamed({"r": "s"})
    assert other.registers == ("s",)
    assert other.transitions[3] == edge("q1", "qf", "type = 'S' AND id = s.id", "•")
    assert other.renamed({"s": "r"}) == FIGURE_4
    numbered = FIGURE_4.renumbered()
    assert numbered.states == {0, 1, 2}
    assert [(t.source, t.target) for t in numbered.transitions] == [(0, 0), (0, 1), (1, 1), (1, 2)]


def test_useless_states():
    whole = transducer(
        edge("p", "q", "TRUE"),
        edge("p", "dead", "TRUE"),
        edge("never", "q", "TRUE"),
        states=frozenset(("p", "q", "dead", "never")),
    )
    assert whole.trimmed() == transducer(edge("p", "q", "TRUE"))
    nothing = transducer(edge("q", "p", "TRUE")).trimmed()
    assert (nothing.states, nothing.finals, nothing.transitions) == ({"p"}, frozenset(), ())


def test_the_register_selection_of_figure_1_of_003():
    f = condition("z.type = 'H' AND z.id = w.id")
    t = MatchTransition(source=1, target=2, formula=f, parameters=("z", "w"), selection=(HEAD, "r1"), output=MARKED)
    assert t.condition == condition("type = 'H' AND id = r1.id")
    whole = RegisterMatchAutomaton.of([t], starts=[1], finals=[2])
    assert as_transducer(whole).transitions == (edge(1, 2, "type = 'H' AND id = r1.id", "•"),)
    assert str(whole) == "RMA: 2 states, 1 transitions, 1 registers"


def test_several_start_states():
    a, b = (
        MatchTransition(source=k, target=2, formula=condition(f"type = '{t}'"), output=MARKED)
        for k, t in enumerate("AB")
    )
    whole = RegisterMatchAutomaton.of([a, b], starts=[0, 1], finals=[2])
    single = as_transducer(whole)
    assert len(single.states) == 4
    for letter, found in (("A", {frozenset((0,))}), ("B", {frozenset((0,))}), ("C", set())):
        assert supports(matches(whole, word(letter))) == supports(matches(single, word(letter))) == found


@examples(100)
@given(compiled(), strings(4))
def test_from_one_model_to_the_other_and_back(case, rows):
    _, t = case
    events = Stream.from_dicts(rows)
    other = as_register_match_automaton(t)
    assert matches(other, events) == matches(t, events)
    assert as_transducer(other) == t


def test_the_run_of_figure_2():
    """004 run (3), its events counted from 0."""
    whole = SymbolicRegisterTransducer.of(
        [
            edge("qs", "q1", "type = 'B'", "•", "r1"),
            edge("q1", "q1", "TRUE"),
            edge("q1", "qf", "type = 'S' AND id = r1.id", "•"),
        ],
        start="qs",
        finals=["qf"],
    )
    (run,) = accepting_runs(whole, TABLE_1[:4])
    assert str(run) == "[0, qs, ♯] –•→ [1, q1, 0] –⊗→ [2, q1, 0] –⊗→ [3, q1, 0] –•→ [4, qf, 0]"
    assert run.complex_event == {("event", 0), ("event", 3)}
    assert isinstance(run.transitions[0], SymbolicTransition)


@pytest.mark.parametrize("state", [[1], {"q": 1}, 1.5, None, (0, [1]), frozenset(((0, 2.5),))])
def test_states_are_numbers_names_and_what_is_made_of_them(state):
    with pytest.raises(StateError, match="a state is a number, a name, or a tuple or frozenset of states, not"):
        SymbolicTransition(source=0, target=state)
    with pytest.raises(StateError, match=r"such as .* can stand for it"):
        SymbolicRegisterTransducer.of([], start=state, finals=[0])
    with pytest.raises(StateError):
        SymbolicRegisterTransducer.of([], start=0, finals=[state])
