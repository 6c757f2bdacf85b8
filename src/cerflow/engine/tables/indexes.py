"""The registers that find the configurations affected by an event; see `cerflow.engine.kernels.state.index`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cerflow.engine import layout

#: Of the comparisons of an event column with a slot: whether the column is the least value, and the greatest.
_BOUNDS = {
    layout.EQ: (True, True),
    layout.GT: (False, True),
    layout.GE: (False, True),
    layout.LT: (True, False),
    layout.LE: (True, False),
}

#: How atoms find configurations: by the kind, by which slot, whether that is a float.
_Candidate = tuple[int, int, int]
#: The event columns with the least and the greatest value, -1 for none.
_Columns = tuple[int, int]


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
                # Two bounds find less than one.
                counts[source].update({found: 2 + (min(columns) >= 0) for found, columns in candidates.items()})
        self._chosen = [_best(count) for count in counts]

    def rows(self) -> list[list[int]]:
        """The rows of `TableArrays.indexes`."""
        trees = 0
        rows = []
        for candidate in self._chosen:
            if candidate is None:
                rows.append([layout.SCAN, 0, 0, -1])
                continue
            ordered = candidate[0] == layout.ORDERED
            rows.append([*candidate, trees if ordered else -1])
            trees += ordered
        return rows

    def columns(self, state: int, moves: Sequence[int]) -> _Columns:
        """The event columns with the least and greatest values by which these moves may fire in their source, or -1."""
        candidate = self._chosen[state]
        if candidate is None or not moves:
            return -1, -1
        least, greatest = zip(*(self._candidates[move].get(candidate, (-1, -1)) for move in moves))
        return _same(least), _same(greatest)


def _same(columns: Sequence[int]) -> int:
    return columns[0] if len({*columns}) == 1 else -1


def _best(count: Counter[_Candidate]) -> _Candidate | None:
    """The candidate that serves most moves; among equals, equality finds the fewest configurations."""
    return max(count, key=lambda candidate: (count[candidate], candidate[0] == layout.EQUAL), default=None)


def _candidates(rows: Sequence[Sequence[int]]) -> Mapping[_Candidate, _Columns]:
    found: dict[_Candidate, _Columns] = {}
    for row in rows:
        operator, kind = row[layout.A_OPERATOR], row[layout.A_KIND]
        if operator in _BOUNDS and kind != layout.RANK:
            equal = layout.EQUAL if operator == layout.EQ else layout.ORDERED
            candidate = (equal, row[layout.A_RIGHT], int(kind == layout.FLOAT))
            before = found.get(candidate, (-1, -1))
            least, greatest = (
                row[layout.A_LEFT] if bound and old < 0 else old for bound, old in zip(_BOUNDS[operator], before)
            )
            found[candidate] = least, greatest
    return found
