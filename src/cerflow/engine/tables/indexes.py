"""The registers that find the configurations affected by an event; see `cerflow.engine.kernels.state.index`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cerflow.engine import layout

_KINDS = {
    layout.EQ: layout.EQUAL,
    layout.GT: layout.LEAST_FIRST,
    layout.GE: layout.LEAST_FIRST,
    layout.LT: layout.GREATEST_FIRST,
    layout.LE: layout.GREATEST_FIRST,
}

#: How an atom finds configurations (kind, slot, whether it is a float), and the event column that it compares with.
_Candidate = tuple[int, int, int]


class Indexes:
    """The indexes of all states.

    ``atoms[move]`` are the rows of `TableArrays.atoms` of each move, except those of windows; ``sources[move]`` the
    states they leave; ``allowed[state]`` says whether a state may have an index.
    """

    def __init__(
        self, atoms: Sequence[Sequence[Sequence[int]]], sources: Sequence[int], allowed: Sequence[bool]
    ) -> None:
        self._candidates = [_candidates(rows) for rows in atoms]
        counts: list[Counter[_Candidate]] = [Counter() for _ in allowed]
        for candidates, source in zip(self._candidates, sources):
            if allowed[source]:
                counts[source].update(candidates.keys())
        self._chosen = [_best(count) for count in counts]

    def rows(self) -> list[list[int]]:
        """The rows of `TableArrays.indexes`."""
        heaps = 0
        rows = []
        for candidate in self._chosen:
            if candidate is None:
                rows.append([layout.SCAN, 0, 0, -1])
                continue
            ordered = candidate[0] != layout.EQUAL
            rows.append([*candidate, heaps if ordered else -1])
            heaps += ordered
        return rows

    def column(self, state: int, moves: Sequence[int]) -> int:
        """The event column that finds all configurations in the sources of these moves, or -1."""
        candidate = self._chosen[state]
        if candidate is None or not moves:
            return -1
        columns = {self._candidates[move].get(candidate, -1) for move in moves}
        return columns.pop() if len(columns) == 1 else -1


def _best(count: Counter[_Candidate]) -> _Candidate | None:
    """The candidate that serves most moves; among equals, equality finds the fewest configurations."""
    return max(count, key=lambda candidate: (count[candidate], candidate[0] == layout.EQUAL), default=None)


def _candidates(rows: Sequence[Sequence[int]]) -> Mapping[_Candidate, int]:
    found: dict[_Candidate, int] = {}
    for row in rows:
        operator, kind = row[layout.A_OPERATOR], row[layout.A_KIND]
        if operator in _KINDS and kind != layout.RANK:
            candidate = (_KINDS[operator], row[layout.A_RIGHT], int(kind == layout.FLOAT))
            found.setdefault(candidate, row[layout.A_LEFT])
    return found
