"""The Boolean algebra of tests on one event: which of them can hold together (P1 App. C.3.2, predicate types).

A *letter* stands for all events that some tests cannot tell apart; every event belongs to exactly one. Letters are
found lazily, for the tests that are asked about: the type of the event is decided first, and with it most tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cerflow.conditions.elementary import TRUE, elementary, normal, settled
from cerflow.deciding.budget import Budget
from cerflow.deciding.event_spaces import World
from cerflow.deciding.sample_strings import fresh_word
from cerflow.deciding.satisfiable_minterms import Cells, Values
from cerflow.language.condition import Condition, Constant

__all__ = ["Letter", "Minterms"]


@dataclass(frozen=True)
class Letter:
    """Events that some tests cannot tell apart.

    ``holds`` are the tests that hold of them; of all others it is certain that they do not. ``values`` are the
    attributes of one such event, by column, its type among them. ``assumed`` names the conditions because of which it
    is not certain that there is such an event; then ``values`` is only part of the truth.
    """

    holds: frozenset[Condition]
    type: str
    values: Values
    assumed: tuple[Condition, ...] = ()


class Minterms:
    """The letters of tests in one world. ``mentioned`` are names that the type of any other event may not have."""

    def __init__(self, world: World, mentioned: frozenset[str], budget: Budget) -> None:
        self.world = world
        self._budget = budget
        self._cells = Cells(world, mentioned, budget)
        self._other_type = fresh_word(mentioned)
        self._known: dict[tuple[Condition, ...], tuple[Letter, ...]] = {}

    def letters(self, tests: Sequence[Condition]) -> tuple[Letter, ...]:
        """The letters of distinct tests, those of which there certainly is an event first.

        Raises `UnsupportedQueryError` when the budget is spent.
        """
        key = tuple(tests)
        if key not in self._known:
            self._known[key] = self._letters(key)
        return self._known[key]

    def satisfiable(self, tests: Sequence[Condition]) -> bool | None:
        """Whether some event satisfies all of the tests; None if that is not known."""
        whole = frozenset(tests)
        found = [letter for letter in self.letters(tuple(whole)) if letter.holds == whole]
        return None if found and found[0].assumed else bool(found)

    def _letters(self, tests: tuple[Condition, ...]) -> tuple[Letter, ...]:
        found: dict[frozenset[Condition], Letter] = {}
        begin = tuple(map(normal, tests))
        seen: tuple[set[tuple[Condition, ...]], ...] = ({begin}, set())
        certain: list[tuple[tuple[Condition, ...], Values, tuple[Condition, ...]]] = [(begin, {}, ())]
        assumed: list[tuple[tuple[Condition, ...], Values, tuple[Condition, ...]]] = []
        # What is certain comes first, so that no letter is taken for a mere assumption.
        while certain or assumed:
            current, values, doubts = (certain or assumed).pop()
            open_ = [c for c in current if not isinstance(c, Constant)]
            if not open_:
                holds = frozenset(test for test, truth in zip(tests, current) if truth == TRUE)
                found.setdefault(holds, self._letter(holds, values, doubts))
                continue
            # To settle a test takes as long as it has conditions.
            work = len(current) + sum(len(elementary(test)) for test in open_)
            self._budget.spend(work)
            for cell in reversed(self._cells.of(self._next(open_))):
                self._budget.spend(work)
                after = tuple(settled(c, cell.truths) for c in current)
                more = tuple(dict.fromkeys((*doubts, *cell.assumed)))
                if after in seen[0] or (more and after in seen[1]):
                    continue
                seen[bool(more)].add(after)
                (assumed if more else certain).append((after, {**values, **cell.values}, more))
        return tuple(sorted(found.values(), key=lambda letter: len(letter.assumed)))

    def _letter(self, holds: frozenset[Condition], values: Values, assumed: tuple[Condition, ...]) -> Letter:
        world = self.world
        complete = dict(values)
        kind = str(complete.setdefault(world.type, self._other_type))
        if world.stream is not None:
            complete.setdefault(world.stream, "other")
        return Letter(holds, kind, complete, assumed)

    def _next(self, open_: Sequence[Condition]) -> list[Condition]:
        """The elementary conditions to decide next: some, and all that share attributes with them."""
        left = {c: self._cells.columns(c) for test in open_ for c in elementary(test)}
        chosen = min(left, key=lambda c: (self.world.type not in left[c], not self._cells.certain(c)))
        columns = set(left[chosen])
        group = {chosen}
        grown = True
        while grown:
            joined = {c for c, own in left.items() if c not in group and own & columns}
            group |= joined
            columns.update(*(left[c] for c in joined))
            grown = bool(joined)
        return [c for c in left if c in group]
