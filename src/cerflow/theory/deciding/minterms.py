"""The Boolean algebra of tests on one event: which of them can hold together (P1 App. C.3.2, predicate types).

A *minterm* stands for all events that some tests cannot tell apart; every event belongs to exactly one. Minterms are
found lazily, for the tests that are asked about: the type of the event is decided first, and with it most tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.language.condition import Condition, Constant
from cerflow.logic.conditions.atomic_conditions import atomic_conditions, normal, settled
from cerflow.logic.conditions.connectives import TRUE
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.deciding.event_spaces import EventSpace
from cerflow.theory.deciding.samples import fresh_word
from cerflow.theory.deciding.truth_assignments import TruthAssignments, Values


@dataclass(frozen=True)
class EventMinterm:
    """Events that some tests cannot tell apart.

    ``holds`` are the tests that hold of them; of all others it is certain that they do not. ``values`` are the
    attributes of one such event, by column, its type among them. If ``assumed`` names conditions, they leave it open
    whether there is such an event; then ``values`` is only part of the truth.
    """

    holds: frozenset[Condition]
    type: str
    values: Values
    assumed: tuple[Condition, ...] = ()


class EventMinterms:
    """The minterms of tests in one event space. No other event has a type among the ``mentioned`` names."""

    def __init__(self, event_space: EventSpace, mentioned: frozenset[str], budget: Budget) -> None:
        self.event_space = event_space
        self._budget = budget
        self._assignments = TruthAssignments(event_space, mentioned, budget)
        self._other_type = fresh_word(mentioned)
        self._known: dict[tuple[Condition, ...], tuple[EventMinterm, ...]] = {}

    def minterms(self, tests: Sequence[Condition]) -> tuple[EventMinterm, ...]:
        """The minterms of distinct tests; those that certainly have an event come first.

        Raises `UnsupportedQueryError` when the budget is spent.
        """
        key = tuple(tests)
        if key not in self._known:
            self._known[key] = self._minterms(key)
        return self._known[key]

    def satisfiable(self, tests: Sequence[Condition]) -> bool | None:
        """Whether some event satisfies all of the tests; None if that is not known."""
        whole = frozenset(tests)
        found = [minterm for minterm in self.minterms(tuple(whole)) if minterm.holds == whole]
        return None if found and found[0].assumed else bool(found)

    def _minterms(self, tests: tuple[Condition, ...]) -> tuple[EventMinterm, ...]:
        found: dict[frozenset[Condition], EventMinterm] = {}
        begin = tuple(map(normal, tests))
        seen: tuple[set[tuple[Condition, ...]], ...] = ({begin}, set())
        certain: list[tuple[tuple[Condition, ...], Values, tuple[Condition, ...]]] = [(begin, {}, ())]
        assumed: list[tuple[tuple[Condition, ...], Values, tuple[Condition, ...]]] = []
        # Certain assignments come first, so that no minterm is taken for a mere assumption.
        while certain or assumed:
            current, values, doubts = (certain or assumed).pop()
            open_ = [c for c in current if not isinstance(c, Constant)]
            if not open_:
                holds = frozenset(test for test, truth in zip(tests, current) if truth == TRUE)
                found.setdefault(holds, self._minterm(holds, values, doubts))
                continue
            # A test is settled in time proportional to its conditions.
            work = len(current) + sum(len(atomic_conditions(test)) for test in open_)
            self._budget.spend(work)
            for assignment in reversed(self._assignments.of(self._next(open_))):
                self._budget.spend(work)
                after = tuple(settled(c, assignment.truths) for c in current)
                more = tuple(dict.fromkeys((*doubts, *assignment.assumed)))
                if after in seen[0] or (more and after in seen[1]):
                    continue
                seen[bool(more)].add(after)
                (assumed if more else certain).append((after, {**values, **assignment.values}, more))
        return tuple(sorted(found.values(), key=lambda minterm: len(minterm.assumed)))

    def _minterm(self, holds: frozenset[Condition], values: Values, assumed: tuple[Condition, ...]) -> EventMinterm:
        event_space = self.event_space
        complete = dict(values)
        kind = str(complete.setdefault(event_space.type, self._other_type))
        if event_space.stream is not None:
            complete.setdefault(event_space.stream, "other")
        return EventMinterm(holds, kind, complete, assumed)

    def _next(self, open_: Sequence[Condition]) -> list[Condition]:
        """The atomic conditions to decide next: some, and all that share attributes with them."""
        left = {c: self._assignments.columns(c) for test in open_ for c in atomic_conditions(test)}
        chosen = min(left, key=lambda c: (self.event_space.type not in left[c], not self._assignments.certain(c)))
        columns = set(left[chosen])
        group = {chosen}
        grown = True
        while grown:
            joined = {c for c, own in left.items() if c not in group and own & columns}
            group |= joined
            columns.update(*(left[c] for c in joined))
            grown = bool(joined)
        return [c for c in left if c in group]
