"""The operators of CEL on automata (P2 §5.2, §6.1, App. C.1), selection strategies, and *-semantics.

OR, ``;``, ``+``, ``:`` and ``:+`` are `union`, `concatenate` and `iterate`; AND is `intersect`. ALL and UNLESS are the
engine's constructions for these operators. Under *-semantics runs jump over all events that they do not label
(Propositions 5.3 to 5.5). Whether two automata have the same matches on every string is undecidable in general
(universality of register automata is, 004 §6), but not if registers hold finitely many values, for strings of bounded
length, and where the outputs of a string determine the run.

The strategies are those of P1 Theorem 4, App. C.3. Their automata follow three sets of runs of the same length, much as
A_MAX does: those with the same marks, those preferred to them, and those that may still become so. A_NXT and A_LAST
order all states instead, in a total preorder T1 … Tk, of which only one class and the union of those before it matter.
So errata E5 and E13 do not arise. As erratum E4 requires, NEXT makes final states that only • enters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from cerflow.automata.compile.negation import unless
from cerflow.automata.compile.products import product_all
from cerflow.automata.model.fragment import Fragment, RegisterFile
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.optimise.simplify import simplify
from cerflow.base.errors import ArgumentError, one_of
from cerflow.base.events import ComplexEvent, Stream, StreamGiven, as_stream
from cerflow.base.schema import Schema
from cerflow.language.automaton import Model, State, sorted_states
from cerflow.language.condition import Condition
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.theory.deciding.equivalence import answer_for
from cerflow.theory.deciding.witnesses import Answer, Budget, Witness
from cerflow.theory.from_automata import matches_of_star_runs
from cerflow.theory.papers.constructions.determinize import steps_by_minterm
from cerflow.theory.papers.constructions.normal_forms import steps_allowed
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton, Effect, Successor, fresh_names
from cerflow.theory.papers.model.conditions import as_condition
from cerflow.theory.papers.model.faults import LabelSetError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, ComplexEventTransition, FreeA, defined_for
from cerflow.theory.papers.model.runs import accepts, matches, reported_matches
from cerflow.theory.papers.translations.conversions import to_engine, unary_from_engine, with_marked_ends

__all__ = ["add_label", "all_of", "anchor", "filter_label", "project_labels", "rename_label", "unless_found"]
__all__ += ["select_last", "select_max", "select_next", "select_strict"]
__all__ += ["delete_unlabelled", "difference", "star_difference", "star_matches", "with_star_runs"]


@defined_for(UCEA, SRT, RMA)
def add_label(automaton: AnyA, label: str) -> AnyA:
    """``A IN label``: all events that have a label get this one, too."""
    _check_names(label)
    return _with_output(automaton, lambda output: output | {label} if output else output)


@defined_for(UCEA, SRT, RMA)
def rename_label(automaton: AnyA, old: str, new: str) -> AnyA:
    """``A[old -> new]``: events under the old label get the new one instead."""
    _check_names(old, new)
    return _with_output(automaton, lambda output: (output - {old}) | {new} if old in output else output)


@defined_for(UCEA, SRT, RMA)
def project_labels(automaton: AnyA, labels: Iterable[str]) -> AnyA:
    """``PROJECT labels (A)``: only these labels stay; a complex event may lose its last event, or all of them."""
    if isinstance(labels, str):
        raise LabelSetError(f"the labels that stay are a collection of names, not {labels!r}; write [{labels!r}]")
    kept = frozenset(labels)
    _check_names(*kept)
    return _with_output(automaton, lambda output: output & kept)


@defined_for(CEA, UCEA, SRT, RMA)
def filter_label(automaton: AnyA, label: str, condition: str | Condition) -> AnyA:
    """``A FILTER condition``: each event under the label satisfies a condition on it, as "v > 1" (P2 §4).

    The label of the marks of a CEA is "event". Without an event under the label the condition holds. Raises
    `QuerySyntaxError` for text that is not a condition.
    """
    _check_names(label)
    asked = conjuncts(as_condition(condition))
    return automaton.rewritten(
        lambda t: (conjunction([*conjuncts(t.guard), *asked]), t.output, t.writes) if label in t.output else t.effect
    )


@defined_for(CEA, UCEA, SRT, RMA)
def anchor(automaton: AnyA) -> AnyA:
    """``START(A)``: the complex events that begin with the first event that the run reads.

    Raises `EpsilonFreeError` for an automaton with ε-transitions.
    """
    automaton.refuse_epsilon()
    begin: State = next(fresh_names(automaton.states, "begin"))
    first = [t.between(begin, t.target) for t in automaton.transitions if t.source in automaton.starts and t.output]
    return automaton.with_transitions((*first, *automaton.transitions), starts=(begin,))


def _with_output(automaton: AnyA, change: Callable[[frozenset[str]], frozenset[str]]) -> AnyA:
    return automaton.rewritten(lambda t: (t.condition, change(t.output), t.writes))


def _check_names(*labels: str) -> None:
    for label in labels:
        if not isinstance(label, str):
            raise LabelSetError(f"a label is a name, not {label!r}")


@defined_for(CEA, UCEA)
def all_of(left: FreeA, right: FreeA) -> UCEA:
    """``A1 ALL A2``: unions of a complex event of each; one of the two reads the first event, and one the last.

    Each side may begin later than the other, and be done earlier.
    """
    return _finished(product_all(_fragment(left), _fragment(right)))


@defined_for(CEA, UCEA)
def unless_found(automaton: FreeA, excluded: FreeA) -> UCEA:
    """``A1 UNLESS A2``: complex events of the first, if the second has none on any of the events read.

    A run of the second may begin with any of these events and end with any. Raises `UnsupportedQueryError` for a too
    large result.
    """
    return _finished(unless(_fragment(automaton), _fragment(excluded), RegisterFile()))


def _fragment(automaton: FreeA) -> Fragment:
    return Fragment.of(to_engine(automaton))


def _finished(fragment: Fragment) -> UCEA:
    return unary_from_engine(simplify(fragment, (), None, frozenset()))


_Set = frozenset[State]
_MARKS = (True, False)


@defined_for(CEA)
def select_strict(automaton: CEA) -> CEA:
    """The complex events that are intervals: first only ◦, in states (q, "◦"), then only •, in states (q, "•")."""

    def step(phase: str, t: ComplexEventTransition) -> Iterator[tuple[str, Effect]]:
        if t.marks or phase == "◦":
            yield "•" if t.marks else "◦", t.effect

    return automaton.tracked("◦", step, lambda phase: phase == "•")


@defined_for(CEA)
def select_next(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event the complex event that is greatest by ``≤next``: the first difference decides.

    States are triples of sets of states: of the runs with the same marks, of those that are preferred, and of those
    that an event may make so. Raises `UnsupportedQueryError` if more than ``most`` minterms would have to be tried.
    """
    return _preferred(with_marked_ends(automaton), {True: _MARKS, False: _MARKS}, most)


@defined_for(CEA)
def select_last(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event the complex event that is greatest by ``≤last``: the last difference decides.

    States and errors are those of `select_next`.
    """
    return _preferred(automaton, {True: (True,), False: (False,)}, most, always=True)


@defined_for(CEA)
def select_max(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event, the complex events that no other contains.

    States and errors are those of `select_next`.
    """
    return _preferred(automaton, {True: (True,), False: _MARKS}, most)


def _preferred(automaton: CEA, stay: Mapping[bool, Sequence[bool]], most: int | None, *, always: bool = False) -> CEA:
    """The runs to which none is preferred when they end.

    A run that marks an event is preferred from then on to those that do not: to those with the same marks before, or
    ``always``. Where a run marks an event or not, a preferred one has to do as ``stay`` says to stay so.
    """
    budget = steps_allowed(most)

    def successors(place: tuple[_Set, _Set, _Set]) -> Iterator[Successor[tuple[_Set, _Set, _Set]]]:
        same, better, rivals = place
        for condition, taken in steps_by_minterm(automaton, same | better | rivals, budget):
            for mark in _MARKS:
                ahead = _reached(taken, better, stay[mark]) | _reached(taken, rivals, () if mark else (True,))
                beside = _reached(taken, same, (mark,)) - ahead
                if beside:
                    after = _reached(taken, rivals, _MARKS) if always else beside
                    yield (beside, ahead, after), condition, MARKED if mark else SKIPPED, SKIPPED

    def is_final(place: tuple[_Set, _Set, _Set]) -> bool:
        return not place[0].isdisjoint(automaton.finals) and place[1].isdisjoint(automaton.finals)

    return CEA.built([(automaton.starts, frozenset[State](), automaton.starts)], successors, is_final)


def _reached(taken: Iterable[ComplexEventTransition], states: _Set, marks: Sequence[bool]) -> _Set:
    """``Δ(T, P, m)`` for some m, where P allows the transitions ``taken``."""
    return frozenset(t.target for t in taken if t.source in states and t.marks in marks)


def delete_unlabelled(automaton: FreeA) -> FreeA:
    """The automaton without the transitions that label nothing, which *-runs do not take (Proposition 5.4)."""
    return automaton.with_transitions(t for t in automaton.transitions if t.output)


@defined_for(CEA, UCEA)
def with_star_runs(automaton: FreeA) -> FreeA:
    """The automaton whose ordinary complex events are the complex events of the given one under *-semantics.

    Its states are pairs: (q, "◦") passes over any event, and final states (q, "•") are entered with a label.
    """
    kept = delete_unlabelled(automaton)

    def successors(place: tuple[State, str]) -> Iterator[Successor[tuple[State, str]]]:
        state, phase = place
        if phase == "•":
            return
        yield place, TRUE, SKIPPED, SKIPPED
        for t in kept.leaving(state):
            yield (t.target, "◦"), *t.effect
            if t.target in kept.finals:
                yield (t.target, "•"), *t.effect

    starts = [(q, "◦") for q in sorted_states(kept.starts)]
    return automaton.built(starts, successors, lambda place: place[1] == "•")


def star_matches(automaton: FreeA | Transducer, events: StreamGiven) -> frozenset[tuple[int, ComplexEvent]]:
    """``⟦A⟧*_n`` for all n: a *-run takes a labelling transition at each of some events, and the last of these is n.

    Raises `UnsupportedQueryError` for a transducer with registers.
    """
    if isinstance(automaton, Transducer):
        return frozenset(matches_of_star_runs(automaton, as_stream(events)))
    return reported_matches(with_star_runs(automaton), events)


@defined_for(CEA, UCEA)
def star_difference(automaton: FreeA, *, schema: Schema | None = None, steps: int | None = None) -> Answer:
    """Whether the automaton lacks the *-property, with a shortest stream that shows it (Prop. 5.4, Cor. 5.5).

    It has the property if it finds each complex event at its last event, and if complex events depend only on their own
    events. Exactly then it has the same ones under *-semantics, and some formula with ``;``, OR and ``+`` has them too.
    Options and errors are those of `difference`.
    """
    return difference(automaton, with_star_runs(automaton), schema=schema, steps=steps)


def difference(
    first: Automaton,
    second: Automaton,
    *,
    schema: Schema | None = None,
    steps: int | None = None,
    output: Literal["labels", "positions"] = "labels",
) -> Answer:
    """Whether some string has a match in only one of the automata, with a shortest such string.

    Automata without memory are compared by their complex events, UCEA including the labels; with
    ``output="positions"`` by the marked positions alone (P2 §4). `cerflow.difference` compares formulas and queries.

    All strings count: attributes may be of any kind that fits the conditions and may be null; a `Schema` fixes their
    kinds.
    A string that is found is replayed by the definition of runs. With registers the extra ``cerflow[decide]`` answers.
    The answer is unknown, with the reason, if a condition cannot be analysed or nothing is found and nothing proved.
    Raises `UnsupportedQueryError` for automata whose registers matter if the extra is not installed, and if more than
    ``steps`` steps would be needed for automata without memory.
    """
    one_of(output, "output", "labels", "positions")
    for given in (first, second):
        if not isinstance(given, Automaton):
            raise ArgumentError(
                f"difference compares automata, not {type(given).__name__}; cerflow.difference compares formulas"
            )
    if output == "positions":
        first, second = (
            automaton.rewritten(lambda t: (t.condition, MARKED if t.output else SKIPPED, t.writes))
            for automaton in (first, second)
        )
    empty = [a.model.anywhere and accepts(a, ()) for a in (first, second)]
    if empty[0] != empty[1]:
        return Answer(True, Witness((), pa.schema([]), frozenset(), int(empty[1])))

    def replay(witness: Witness) -> bool:
        stream = "stream" if "stream" in witness.columns.names else None
        if schema is not None:
            stream = schema.stream
        events = Stream.from_dicts(witness.events, type="type" if schema is None else schema.type, stream=stream)
        has = [
            (witness.detected_at, witness.complex_event) in reported_matches(automaton, events)
            if automaton.model is Model.CEA
            else witness.complex_event in matches(automaton, events)
            for automaton in (first, second)
        ]
        return has == [witness.side == 0, witness.side == 1]

    roots = [t.condition for automaton in (first, second) for t in automaton.transitions if t.condition is not None]
    engine = to_engine(first), to_engine(second)
    return answer_for(engine, roots, schema=schema, budget=Budget(steps), replay=replay)
