"""I/O-determinisation: one run for every output (P1 Proposition 1 and App. C.1, P2 §4.2).

States become sets of configurations; from a set there is one transition for every minterm of the tests and every set of
labels. Registers are part of the configurations, so they have to hold finitely many values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.graphs import reached
from cerflow.language.condition import Condition
from cerflow.logic.conditions.connectives import conjunction, not_true
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.deciding.event_spaces import event_spaces_of, expressions_of
from cerflow.theory.deciding.finite_memory import Configuration, FiniteMemory
from cerflow.theory.deciding.minterms import EventMinterms

Labels = frozenset[str]
Subset = frozenset[Configuration]


class Subsets(FiniteMemory):
    """A transducer, determinised as far as it is asked for; raises as `FiniteMemory` does."""

    def __init__(self, transducer: Transducer, budget: Budget) -> None:
        super().__init__(transducer, budget)
        self._places: dict[Configuration, tuple[int, str]] = {}
        self.initial: Subset = frozenset(map(self.begin, transducer.initial))

    def accepts(self, subset: Iterable[Configuration]) -> bool:
        """Whether a run that ends there detects its complex event."""
        return any(configuration[0] in self.transducer.final for configuration in subset)

    def tests(self, subset: Subset) -> list[Condition]:
        """The tests that decide what follows, each once, in a fixed order."""
        ordered = sorted(subset, key=self._place)
        return list(dict.fromkeys(test for c in ordered for test, _, _ in self.moves(c)))

    def _place(self, configuration: Configuration) -> tuple[int, str]:
        """A sort key for configurations that does not change from process to process."""
        if configuration not in self._places:
            state, memory, begun = configuration
            contents = [sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c) for c in memory]
            self._places[configuration] = (state, f"{contents} {begun}")
        return self._places[configuration]

    def step(self, subset: Subset, holds: frozenset[Condition], type: str | None = None) -> dict[Labels, Subset]:
        """The next subsets after an event on which these tests hold, by the labels that it gets.

        ``type``, if given, takes the place of `TYPE_LABEL`.
        """
        found: dict[Labels, set[Configuration]] = {}
        for configuration in subset:
            moves = self.moves(configuration)
            self._budget.spend(len(moves))
            for test, labels, after in moves:
                if test in holds:
                    if type is not None and TYPE_LABEL in labels:
                        labels = labels - {TYPE_LABEL} | {type}
                    found.setdefault(labels, set()).add(after)
        return {labels: frozenset(after) for labels, after in found.items()}


def determinize(transducer: Transducer, *, steps: int | None = None) -> Transducer:
    """The I/O-deterministic transducer with the same matches; the contents of registers become part of the state.

    Tests of a state's transitions with equal labels exclude one another. There may be exponentially many states.
    Raises `UnsupportedQueryError` if more than ``steps`` are needed, or if there are registers.
    """
    budget = Budget(steps)
    subsets = Subsets(transducer, budget)
    spaces = event_spaces_of(expressions_of(transducer))
    algebras = [EventMinterms(event_space, transducer.mentioned, budget) for event_space in spaces]
    moves: list[tuple[Subset, Subset, Condition, Labels]] = []

    def following(subset: Subset) -> Iterator[Subset]:
        tests = subsets.tests(subset)
        for holds in dict.fromkeys(minterm.holds for algebra in algebras for minterm in algebra.minterms(tests)):
            guard = conjunction([t if t in holds else not_true(t) for t in tests])
            for labels, target in subsets.step(subset, holds).items():
                budget.spend()
                moves.append((subset, target, guard, labels))
                yield target

    numbers = {subset: number for number, subset in enumerate(reached([subsets.initial], following))}
    transitions = tuple(Transition(numbers[a], numbers[b], guard, labels=labels) for a, b, guard, labels in moves)
    final = frozenset(number for subset, number in numbers.items() if subsets.accepts(subset))
    return Transducer(len(numbers), frozenset((0,)), final, transitions, mentioned=transducer.mentioned)
