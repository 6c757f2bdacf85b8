"""Which events a pattern without gaps can do without: those that stand in no row of events that may match.

If every match is a row of events, each directly behind the one before, bits say for an event which places of a match it
may have. A few events are left where bits are moved and compared along the stream, or along the events of each key. The
engine decides of these as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from cerflow.engine import layout as engine_layout
from cerflow.engine.scan import layout
from cerflow.engine.scan.ways import Ways
from cerflow.engine.tables.instructions import OPERATORS
from cerflow.engine.tables.transducer_tables import TransducerTables

__all__ = ["Contiguity", "contiguity"]

_Link = tuple[int, int, int, int]
_ALL = tuple(OPERATORS.values())
#: The operators for which a comparison with a slot holds for the value it was last given, too, by how it was given.
_KEPT_FOR = {
    engine_layout.WRITE: _ALL,
    engine_layout.SAME: _ALL,
    engine_layout.LEAST: (engine_layout.LT, engine_layout.LE),
    engine_layout.GREATEST: (engine_layout.GT, engine_layout.GE),
}


@dataclass(frozen=True)
class Contiguity:
    """How matches without gaps lie in a stream.

    They have ``length`` events, or 0 if not all have as many. For each move of the tables ``places`` has the bit of the
    place that its event has. ``first`` and ``last`` are the places, as bits, where matches begin and end, ``follows``
    rows of `ScanArrays.follows`: which places come directly behind others. ``links`` are rows of `ScanArrays.links`:
    comparisons with the event directly before. ``key`` is the number of the column of text that is the key, or
    `NO_KEYS` or `HASHED_KEYS`.

    ``steps`` has for each place of a match the ways (see `cerflow.engine.scan.ways`) of which one must be open to its
    event, and ``labels`` the numbers of the label sets, if all rows of such events are matches. Otherwise both are
    None, and ``undecided`` says why.
    """

    length: int
    places: Sequence[int]
    first: int
    last: int
    follows: Sequence[Sequence[int]]
    links: Sequence[Sequence[int]]
    key: int
    steps: Sequence[int] | None
    labels: Sequence[int] | None
    undecided: str | None

    @property
    def alone(self) -> bool:
        """Whether matches are found on whole columns, without the automaton."""
        return self.labels is not None

    def bits(self, moves: Iterable[int]) -> int:
        """The places that some of these moves give to an event."""
        return _together(self.places[move] for move in moves)


def contiguity(tables: TransducerTables, outputs: Sequence[Sequence[int]], ways: Ways | None) -> Contiguity | str:
    """How the matches of some tables lie, if they have no gaps; or else why events cannot be left out by that.

    ``outputs`` are the rows of `ScanArrays.outputs`, ``ways`` those in which events are relevant.
    """
    arrays = tables.arrays
    if tables.grouped or arrays.options[engine_layout.O_STRATEGY] != engine_layout.EVERYTHING:
        return "runs are compared with each other"
    if len(arrays.checked):
        return "a window measures an attribute, which must not decrease"
    if tables.ticking or tables.asks:
        return "deadlines and predicates"
    classes = _classes(tables)
    keys = [row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]
    if isinstance(classes, str):
        return classes
    if keys and not tables.counted:
        return "matches have gaps"
    # Keys that are found in one of several columns are left to the engine, as those without any value.
    if len({row[layout.O_PLACE] for row in keys}) < len(keys) or any(row[layout.O_COLUMN] < 0 for row in keys):
        return "a key that one of several columns has"
    key = layout.HASHED_KEYS if keys else layout.NO_KEYS
    if len(keys) == 1 and keys[0][layout.O_FORM] == layout.AS_TEXT:
        key = keys[0][layout.O_COLUMN]
    rows = tables.moves.rows
    if len(set(classes)) >= layout.CARRIED:
        return f"more than {layout.CARRIED - 1} places in a match"
    numbers = {found: number for number, found in enumerate(dict.fromkeys(sorted(classes)))}
    places = [1 << numbers[found] for found in classes]
    leaving: dict[int, set[int]] = {}
    for move, place in zip(rows, places):
        leaving.setdefault(move.transition.source, set()).add(place)
    behind: dict[int, int] = {}
    for target, place in {(move.target, place) for move, place in zip(rows, places)}:
        for to in leaving.get(target, ()):
            distance = to.bit_length() - place.bit_length()
            behind[distance] = behind.get(distance, 0) | place
    initial = tables.transducer.initial
    first = _together(place for move, place in zip(rows, places) if move.transition.source in initial)
    last = _together(place for move, place in zip(rows, places) if move.final)
    # Classes of one number each are the numbers of events before.
    length = len(numbers) if len(classes[0]) == 1 else 0
    links = _links(tables, places, outputs)
    lie = length, places, first, last, sorted(behind.items()), links, key
    whole = "keys" if keys else _whole(tables, places, length, ways)
    if isinstance(whole, str) and len(numbers) > layout.PLACES:
        return f"more than {layout.PLACES} places in a match"
    if isinstance(whole, str):
        return Contiguity(*lie, None, None, whole)
    return Contiguity(*lie, *whole, None)


def _whole(
    tables: TransducerTables, places: Sequence[int], length: int, ways: Ways | None
) -> tuple[list[int], list[int]] | str:
    """The ways and the label set of each place, if these alone decide; or else what else has to be looked at."""
    arrays = tables.arrays
    transitions = arrays.transitions
    if not length:
        return "not all matches have as many events"
    if ways is None or not ways.apart:
        return f"more than {layout.WAYS} different conditions"
    if arrays.options[engine_layout.O_CONSUME]:
        return "consumption"
    if tables.pick != engine_layout.EVERYTHING:
        return "a strategy"
    if (transitions[:, engine_layout.T_ATOM] != transitions[:, engine_layout.T_ATOM_END]).any():
        return "conditions between events"
    if tables.transducer.window is not None:
        return "a window"
    steps: list[int] = []
    labels: list[int] = []
    for k in range(length):
        own = np.flatnonzero(np.array(places) == 1 << k)
        if len(np.unique(transitions[own][:, [engine_layout.T_SOURCE, engine_layout.T_LABEL]], axis=0)) != 1:
            return "events whose labels depend on their types"
        steps.append(ways.needing(tables.moves.needs[number] for number in own.tolist()))
        labels.append(0 if tables.detecting else int(transitions[own[0], engine_layout.T_LABEL]))
    return steps, labels


def _classes(tables: TransducerTables) -> list[tuple[int, ...]] | str:
    """The place that each move gives to its event, if no event of a match may be skipped; moves of one have equal ones.

    That is the number of events before, if all matches have as many events. Otherwise moves between the same states
    give the same place.
    """
    moves, initial = tables.moves, tables.transducer.initial
    sources = {move.transition.source for move in moves.rows}
    if not sources or any(moves.loops[q] for q in sources - initial) or any(m.target in initial for m in moves.rows):
        return "matches have gaps"
    levels = _levels(tables)
    found: list[tuple[int, ...]]
    if levels is not None:
        found = [(levels[move.transition.source],) for move in moves.rows]
        last = max(found)
        if any(move.final != (place == last) for move, place in zip(moves.rows, found)):
            levels = None
    if levels is None:
        found = [(move.transition.source, move.target, int(move.final)) for move in moves.rows]
    return found


def _levels(tables: TransducerTables) -> dict[int, int] | None:
    """How many events every run has read in each state, if that is one number."""
    initial = tables.transducer.initial
    levels = dict.fromkeys(initial, 0)
    pending = list(initial)
    leaving: dict[int, list[int]] = {}
    for move in tables.moves.rows:
        leaving.setdefault(move.transition.source, []).append(move.target)
    while pending:
        state = pending.pop()
        for target in leaving.get(state, ()):
            if target < 0:
                continue
            level = levels[state] + 1
            if levels.get(target, level) != level:
                return None
            if target not in levels:
                levels[target] = level
                pending.append(target)
    return levels if all(state in levels for state in leaving) else None


def _links(tables: TransducerTables, places: Sequence[int], outputs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Comparisons of an event with the one before, each with the places that it is necessary for."""
    columns = {
        row[layout.O_PLACE]: row[layout.O_COLUMN]
        for row in outputs
        if row[layout.O_TO] == layout.TO_COLUMNS and row[layout.O_FORM] in (layout.AS_INT, layout.AS_FLOAT)
    }
    found: dict[_Link, int] = {}
    for place in set(places):
        numbers = [number for number, own in enumerate(places) if own == place]
        common = set.intersection(*(_comparisons(tables, number) for number in numbers))
        for link in common:
            found[link] = found.get(link, 0) | place
    return [
        [operator, kind, columns[now], columns[before], mask]
        for (operator, kind, now, before), mask in sorted(found.items())
        if columns.get(now, -1) >= 0 and columns.get(before, -1) >= 0
    ]


def _together(bits: Iterable[int]) -> int:
    return reduce(or_, bits, 0)


def _comparisons(tables: TransducerTables, number: int) -> set[_Link]:
    """The comparisons of a move with the event before: operator, kind, own column, the other's column."""
    arrays = tables.arrays
    row = arrays.transitions[number]
    found: set[_Link] = set()
    for atom in arrays.atoms[row[engine_layout.T_ATOM] : row[engine_layout.T_ATOM_END]].tolist():
        operator, kind = atom[engine_layout.A_OPERATOR], atom[engine_layout.A_KIND]
        if operator == engine_layout.PROGRAM or kind == engine_layout.RANK:
            continue
        compared = _compared(tables, int(row[engine_layout.T_SOURCE]), atom[engine_layout.A_RIGHT], operator)
        if compared >= 0:
            found.add((operator, kind, atom[engine_layout.A_LEFT], compared))
    return found


def _compared(tables: TransducerTables, state: int, slot: int, operator: int) -> int:
    """The column that every move to a state gives to a slot such that the comparison holds for it, too; or -1.

    Less than the least value is less than the last one.
    """
    arrays = tables.arrays
    columns: set[int] = set()
    for move in tables.moves.rows:
        if move.target != state:
            continue
        row = arrays.transitions[move.number]
        steps = arrays.steps[row[engine_layout.T_STEP] : row[engine_layout.T_STEP_END]]
        own = steps[steps[:, engine_layout.S_SLOT] == slot]
        plain = len(own) == 1 and operator in _KEPT_FOR.get(int(own[0, engine_layout.S_OPERATION]), ())
        plain = plain and own[0, engine_layout.S_SOURCE] == engine_layout.FROM_COLUMN
        columns.add(int(own[0, engine_layout.S_INDEX]) if plain else -1)
    return columns.pop() if len(columns) == 1 else -1
