"""Matches without gaps that columns decide: every row of consecutive events of a stream, or of a key, that fulfils it.

If all matches have as many events, bits say for an event which step of a match it may be. Bits are moved along the
stream, or along the events of each key, and those fall whose conditions on events before do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from cerflow.base.array_types import IntRows
from cerflow.engine import layout as engine_layout
from cerflow.engine.opcodes import COLUMN
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.emitting import ScannedColumns
from cerflow.engine.scan.program.guards import ALL, Guards, joined_bits
from cerflow.engine.scan.program.links import Links, levels_of
from cerflow.engine.tables.moves import Move
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Condition, Not
from cerflow.language.formula import CountWindow, Window
from cerflow.logic.conditions.guards import TypeTest

#: Rows are sorted by key if links read at least ``_SORTED`` values of earlier events, and ``_SORTED_COLUMN`` more for
#: each column.
_SORTED, _SORTED_COLUMN = 4, 2


@dataclass(frozen=True)
class Contiguity:
    """How matches without gaps lie in a stream, if columns alone decide which rows are matches.

    They have ``length`` events. ``links`` are rows of `ScanArrays.links`: conditions on events before, ``computed`` of
    `ScanArrays.computing`, and ``sorting`` of the array of this name, if rows are sorted by key. ``key`` is the number
    of the column of text that is the key, or `NO_KEYS` or `HASHED_KEYS`. ``guards`` has for each step of a match the
    `guards` of which one must hold for its event, and ``labels`` by these guards the numbers of the label sets: (steps,
    256), or (steps, 1) if they do not depend on guards. ``texts`` are the columns of text whose entries stand for keys
    while rows are read.
    """

    length: int
    links: Sequence[Sequence[int]]
    computed: Sequence[Sequence[int]]
    sorting: Sequence[Sequence[int]]
    key: int
    guards: Sequence[int]
    labels: IntRows
    texts: frozenset[int]

    @property
    def told_apart(self) -> bool:
        """Whether the labels of an event depend on its guards."""
        return int(self.labels.shape[1]) > 1

    @property
    def keyed(self) -> bool:
        """Whether the events of each key are a stream of their own."""
        return self.key != layout.NO_KEYS

    @property
    def compared(self) -> list[int]:
        """The columns of text that are compared with another one, which must not be dictionaries."""
        pairs = [link[1:3] for link in self.links if link[0] != engine_layout.PROGRAM]
        return [column for one, other in pairs if one != other for column in (one, other)]

    @property
    def related(self) -> bool:
        """Whether keys or conditions on events before decide, too."""
        return self.keyed or len(self.links) > 0

    @property
    def admits(self) -> list[int]:
        """`ScanArrays.admits`."""
        if not self.keyed:
            return []
        return [joined_bits(1 << k for k, step in enumerate(self.guards) if step & byte) for byte in range(ALL + 1)]


def contiguity(
    tables: TransducerTables,
    outputs: Sequence[Sequence[int]],
    relevant: Guards | None,
    to: ScannedColumns,
    measured: Callable[[Window, bool], Sequence[int]],
) -> Contiguity | str:
    """How the matches of some tables lie, if they have no gaps and columns decide; or else why that is not so.

    ``outputs`` are the rows of `ScanArrays.outputs`, ``relevant`` the guards of relevant events, ``measured`` as for
    `cerflow.engine.scan.program.flow.flow_of`. The programs of conditions are added to the code of ``to``.
    """
    reason = undecided(tables)
    if reason is not None:
        return reason
    levels = _steps(tables)
    keys = [row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]
    if isinstance(levels, str):
        return levels
    if keys and not tables.counted:
        return "matches have gaps"
    key = key_column(keys)
    if key is None:
        return "a key in one of several columns"
    length = max(levels) + 1
    if length >= layout.CARRIED:
        return f"more than {layout.CARRIED - 1} positions in a match"
    steps = [1 << level for level in levels]
    made = Links(tables, outputs, to, levels=True)
    links, decided = made.rows(steps)
    whole = labels_of_steps(tables, steps, length, relevant) if decided else made.reason
    if isinstance(whole, str):
        return whole
    window = tables.transducer.window
    if window is not None and not isinstance(window, CountWindow) and length > 1:
        bound = measured(window, True)
        if bound[layout.O_FORM] != layout.AS_BOUND:
            return "a window over times that are floats"
        links = sorted([*links, *made.within(bound, length - 1)], key=lambda link: link[0] != engine_layout.PROGRAM)
    sorting = [] if key == layout.NO_KEYS else _sorting(links, to)
    return Contiguity(length, links, made.computed, sorting, key, *whole, texts_of(keys))


def _sorting(links: Sequence[Sequence[int]], to: ScannedColumns) -> list[list[int]]:
    """The columns that ``links`` read, which are made to read others that are sorted, and those; none if few are read.

    To sort a column takes about as long as to read two of its values of events before.
    """
    if any(link[0] != engine_layout.PROGRAM for link in links):
        return []
    spans = {tuple(link[1:3]) for link in links}
    reads = [to.code[k] for span in spans for k in range(*span) if to.code[k][0] == COLUMN]
    far = sum(argument >> layout.COLUMN_BITS > 0 for _, argument in reads)
    mask = (1 << layout.COLUMN_BITS) - 1
    columns = sorted({argument & mask for _, argument in reads})
    if far < _SORTED + _SORTED_COLUMN * len(columns):
        return []
    own = {column: to.computed() for column in columns}
    for instruction in reads:
        instruction[1] += own[instruction[1] & mask] - (instruction[1] & mask)
    return [[number, column] for column, number in own.items()]


def undecided(tables: TransducerTables, choice: int = engine_layout.EVERYTHING) -> str | None:
    """Why columns do not decide which rows are matches; None if they may, but for a ``choice`` among those."""
    if tables.grouped or tables.arrays.options[engine_layout.O_STRATEGY] not in (engine_layout.EVERYTHING, choice):
        return "runs are compared with each other"
    if len(tables.arrays.checked):
        return "a window measures an attribute, which must not decrease"
    if tables.ticking or tables.asks:
        return "deadlines and predicates"
    return None if tables.schema.forget is None else "a pause between neighbours parts them"


def key_column(keys: Sequence[Sequence[int]]) -> int | None:
    """The number of the column of text that is the key, or `NO_KEYS` or `HASHED_KEYS`; None if only the engine knows.

    ``keys`` are rows of `ScanArrays.outputs`. The engine finds keys that are in one of several columns.
    """
    if len({row[layout.O_PLACE] for row in keys}) < len(keys) or any(row[layout.O_COLUMN] < 0 for row in keys):
        return None
    if len(keys) == 1 and keys[0][layout.O_FORM] == layout.AS_TEXT:
        return keys[0][layout.O_COLUMN]
    return layout.HASHED_KEYS if keys else layout.NO_KEYS


def texts_of(keys: Sequence[Sequence[int]]) -> frozenset[int]:
    """The columns of text whose entries stand for ``keys``, which are rows of `ScanArrays.outputs`."""
    return frozenset(row[layout.O_COLUMN] for row in keys if row[layout.O_FORM] == layout.AS_TEXT)


def labels_of_steps(
    tables: TransducerTables,
    steps: Sequence[int],
    length: int,
    relevant: Guards | None,
    choice: int = engine_layout.EVERYTHING,
) -> tuple[list[int], IntRows] | str:
    """The guards and the label sets of each step, if these alone decide; or else what else has to be looked at.

    ``steps`` are those of moves, as bits; of the matches there may be a ``choice``.
    """
    arrays = tables.arrays
    if relevant is None or not relevant.apart:
        return f"more than {layout.GUARDS} different conditions"
    if arrays.options[engine_layout.O_CONSUME]:
        return "consumption"
    if tables.pick not in (engine_layout.EVERYTHING, choice):
        return "a strategy"
    window = tables.transducer.window
    if isinstance(window, CountWindow) and window.events < length:
        return "a window shorter than the match"
    guards, labels = list[int](), np.zeros((length, ALL + 1), np.int64)
    for k in range(length):
        own = [move for move, step in zip(tables.moves.rows, steps) if step == 1 << k]
        made = arrays.transitions[[move.number for move in own]]
        label = np.zeros(len(own), np.int64) if tables.detecting else made[:, engine_layout.T_LABEL]
        if len(set(made[:, engine_layout.T_SOURCE].tolist())) != 1:
            return "what comes next depends on the events before"
        if len({*label.tolist()}) > 1 and not (label.all() and _exclude_each_other(tables, own)):
            return "events whose labels depend on their values"
        guards.append(relevant.needing(move.needs for move in own))
        for move, number in zip(own, label.tolist()):
            bits = relevant.needing([move.needs])
            labels[k, [byte for byte in range(ALL + 1) if byte & bits]] = number
        if len({*label.tolist()}) == 1:
            labels[k] = label[0]
    return guards, labels if (labels != labels[:, :1]).any() else labels[:, :1]


def _exclude_each_other(tables: TransducerTables, moves: Sequence[Move]) -> bool:
    """Whether no event makes two of some moves: one needs another type, or what the other needs not to hold."""
    needed = [[tables.tests[n] for n in move.needs] for move in moves]
    return all(any(_excludes(*tests) for tests in product(*two)) for two in combinations(needed, 2))


def _excludes(one: Condition, other: Condition) -> bool:
    if isinstance(one, TypeTest) and isinstance(other, TypeTest):
        return one.type != other.type
    return one == Not(other) or other == Not(one)


def _steps(tables: TransducerTables) -> list[int] | str:
    """For each move the number of events before its event, if that is one number and no event of a match is skipped."""
    moves, initial = tables.moves, tables.transducer.initial
    sources = {move.transition.source for move in moves.rows}
    if not sources or any(moves.loops[q] for q in sources - initial) or any(m.target in initial for m in moves.rows):
        return "matches have gaps"
    levels = levels_of(tables) or {}
    found = [levels.get(move.transition.source, -1) for move in moves.rows]
    if -1 in found or any(move.final != (step == max(found)) for move, step in zip(moves.rows, found)):
        return "not all matches have the same number of events"
    return found
