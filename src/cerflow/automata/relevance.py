"""The relevant events of a transducer, as a condition on one event.

An event is irrelevant if, whatever the state of a run, no transition that labels, writes or moves can fire, and the
run may stay where it is. Without such events all runs stay the same, and so do all results except positions. Time alone
fires nothing, since windows are tested only when an event is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.automata.model.clock import has_ticks
from cerflow.automata.model.transducer import Transducer
from cerflow.base import limits
from cerflow.base.graphs import gathered
from cerflow.language.condition import And, Condition, Not, Or
from cerflow.language.formula import AttributeWindow, CountWindow, Window
from cerflow.language.node import walk
from cerflow.logic.conditions import propositions
from cerflow.logic.conditions.connectives import FALSE, TRUE
from cerflow.logic.conditions.guards import InWindow, Measure, Satisfied, TypeTest


@dataclass(frozen=True)
class Relevance:
    """Relevant events satisfy ``condition``, a proposition (see `propositions`).

    ``reasons`` explain to users why no more events are left out.
    """

    condition: Condition
    reasons: tuple[str, ...] = ()


def relevance_of_transducer(transducer: Transducer) -> Relevance:
    """The relevant events of a transducer; if every event is relevant, the condition is TRUE, with the reason."""
    if has_ticks(transducer):
        return Relevance(TRUE, ("any event may show that a deadline has passed",))
    trees = (tree for t in transducer.transitions for tree in t.trees)
    windows: list[Window | None] = [n.window for tree in trees for n in walk(tree) if isinstance(n, Measure | InWindow)]
    windows += [transducer.window, *(r.window for r in transducer.registers)]
    if any(isinstance(window, CountWindow) for window in windows):
        return Relevance(TRUE, ("a window of events counts every event",))
    if any(isinstance(window, AttributeWindow) for window in windows):
        # A decreasing one is a bad record, and a null one has the measure of the previous event.
        return Relevance(TRUE, ("the attribute that measures a window is read of every event",))
    tests: dict[Condition, None] = {}
    reasons: dict[str, None] = {}
    for state, leaving in enumerate(transducer.leaving()):
        if not leaving:
            continue
        staying = []
        for t in leaving:
            # A loop on a final state detects again.
            if t.stays and state not in transducer.final:
                staying.append(t.test)
            else:
                tests[propositions.is_true(t.test)] = None
        if TRUE in staying:
            continue
        tests[propositions.simplified(And, list(map(propositions.is_not_true, staying)))] = None
        if not staying and state in transducer.initial:
            reasons["it counts which event is the first of the stream"] = None
        elif not staying:
            reasons["no event may come between some of those of a match"] = None
    if len(tests) > limits.RELEVANCE_TESTS:
        tests = {propositions.weakened(test, lambda leaf: _type_of(leaf) is not None): None for test in tests}
    condition = _by_type(list(tests))
    if condition == TRUE and not reasons:
        reasons["events of every type may matter"] = None
    return Relevance(condition, tuple(reasons))


def _type_of(leaf: Condition) -> str | None:
    """The type that a leaf tests, whatever the stream of the event; None for other leaves."""
    asked = leaf.operand.condition if isinstance(leaf, Not) and isinstance(leaf.operand, Satisfied) else leaf
    return asked.type if isinstance(asked, TypeTest) else None


def _by_type(tests: Sequence[Condition]) -> Condition:
    """The disjunction of propositions, split by type: one condition for each type, and one for all other events.

    So the type of an event is tested once, and conditions that it rules out disappear.
    """
    asking = gathered(
        (name, test)
        for test in tests
        for name in dict.fromkeys(map(_type_of, propositions.leaves_of(test)))
        if name is not None
    )
    # The condition of a test on events of a type that it does not mention.
    elsewhere = {test: rest for test in tests if (rest := _of_type(test, None)) != FALSE}
    others = propositions.simplified(Or, list(elsewhere.values()))
    groups: dict[Condition, list[str]] = {}
    for name, some in sorted(asking.items()):
        here = [_of_type(test, name) for test in some]
        asked = propositions.simplified(Or, [*here, *(rest for test, rest in elsewhere.items() if test not in some)])
        groups.setdefault(asked, []).append(name)
    alternatives = [
        propositions.simplified(And, [propositions.simplified(Or, [TypeTest(name) for name in names]), asked])
        for asked, names in groups.items()
        if asked not in (FALSE, others)
    ]
    apart = [name for asked, names in groups.items() if asked != others for name in names]
    rest = propositions.simplified(And, [*(Not(Satisfied(TypeTest(name))) for name in apart), others])
    return propositions.simplified(Or, [*alternatives, rest])


def _of_type(proposition: Condition, name: str | None) -> Condition:
    """The rest of a proposition for events of a type, or (None) of a type that is not mentioned."""

    def known(leaf: Condition) -> Condition:
        asked = _type_of(leaf)
        if asked is None:
            return leaf
        if asked == name:
            stream = next(n.stream for n in walk(leaf) if isinstance(n, TypeTest))
            if stream is not None:
                return leaf
        return TRUE if (asked == name) != isinstance(leaf, Not) else FALSE

    return propositions.substituted(proposition, known)
