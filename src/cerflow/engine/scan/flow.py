"""The rows of a batch that a run can use, by the automaton's states alone.

Backwards, a run can still end from some states; forwards, a run can be in some states. A row matters if one of its
moves joins the two. Windows bound both, and each key has states of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from cerflow.automata.model.run_windows import window_of_runs
from cerflow.engine import layout as engine_layout
from cerflow.engine.evaluate.measures import is_global
from cerflow.engine.scan import layout
from cerflow.engine.scan.contiguous import Links, key_column, texts_of
from cerflow.engine.scan.emitting import ScannedColumns
from cerflow.engine.scan.guards import ALL, Guards
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import AttributeWindow, CountWindow, Window

#: Events of a window that never passes.
_ENDLESS = CountWindow(2**62)


@dataclass(frozen=True)
class Flow:
    """What `ScanArrays` needs for the flow.

    ``window`` bounds all matches, or is None; ``reach`` are the outputs that measure it. For the last event of a match
    one of the guards ``last`` holds. ``leads``, ``bit_leads`` and ``masks`` are arrays of `ScanArrays`, ``states``
    those with a column in `ScanArrays.flows`. All events of a match agree on the outputs ``keyed``. It says whether
    rows are ruled out ``backwards`` and ``forwards``.
    """

    window: Window | None
    reach: Sequence[Sequence[int]]
    last: int
    leads: Sequence[Sequence[int]]
    bit_leads: Sequence[int]
    masks: Sequence[int]
    states: Sequence[int]
    keyed: Sequence[Sequence[int]]
    backwards: bool
    forwards: bool
    strict: Strict | None = None


@dataclass(frozen=True)
class Strict:
    """Which ``states`` the next event of a key ends, as 0 or 1, where each key is a stream of its own.

    ``key``, ``links`` and ``texts`` are as in `cerflow.engine.scan.contiguous.Contiguity`, but the bits of links are
    those of moves in `ScanArrays.leads`.
    """

    states: Sequence[int]
    key: int
    links: Sequence[Sequence[int]]
    texts: frozenset[int]


def flow_of(
    tables: TransducerTables,
    outputs: Sequence[Sequence[int]],
    relevant: Guards | None,
    to: ScannedColumns,
    measured: Callable[[Window, bool], Sequence[int]],
) -> Flow | str:
    """The flow of some tables, or why there is none.

    ``outputs`` are the rows of `ScanArrays.outputs`, ``relevant`` the guards of relevant events; ``measured`` gives
    the output for the measure of a window, or for its bound. The programs of conditions between events are added to the
    code of ``to``.
    """
    if relevant is None:
        return "every event counts"
    if tables.ticking:
        return "deadlines"
    window = _passing(tables)
    ends = [needs for move, needs in zip(tables.moves.rows, tables.moves.needs) if move.final]
    compared = tables.grouped or tables.arrays.options[engine_layout.O_STRATEGY] != engine_layout.EVERYTHING
    # Runs with collections that are never completed decide where others stand, and so the order of matches.
    collecting = any(tables.set_slots)
    forwards = not (compared or collecting) and tables.transducer.states <= engine_layout.STATE_BITS
    if window is None and not forwards:
        return "no window bounds all matches, and partial matches are compared or collect values"
    keyed = [row for row in outputs if row[layout.O_TO] == layout.TO_KEYS]
    waits = relevant.ending() if any(frozenset() not in loops for loops in tables.moves.waiting) else 0
    leads, begins, masks, states, bits = _leads(tables, relevant, ALL if compared else waits)
    strict = None
    if tables.counted:
        if compared or collecting:
            return "every event counts, and partial matches are compared or collect values"
        found = _strict(tables, keyed, states, Links(tables, outputs, to).rows(bits)[0])
        if isinstance(found, str):
            return found
        strict = found
    elif not compared:
        tied = tied_columns(tables)
        keyed += [row for row in outputs if row[layout.O_TO] == layout.TO_COLUMNS and row[layout.O_PLACE] in tied]
    return Flow(
        window,
        [measured(window or _ENDLESS, False), measured(window or _ENDLESS, True)],
        ALL if frozenset() in ends else relevant.needing(ends),
        leads,
        begins,
        masks,
        states,
        keyed,
        window is not None,
        forwards,
        strict,
    )


def _strict(
    tables: TransducerTables,
    keys: Sequence[Sequence[int]],
    states: Sequence[int],
    links: Sequence[Sequence[int]],
) -> Strict | str:
    """What the next event of a key ends, or why all events count. ``states`` have a column in `ScanArrays.flows`."""
    moves, initial, key = tables.moves, tables.transducer.initial, key_column(keys)
    windows = [tables.transducer.window, *(column.window for column in tables.columns)]
    other = any(isinstance(w, CountWindow | AttributeWindow) for w in windows) or len(tables.arrays.checked) > 0
    if tables.schema.forget is not None or other:
        return "every event counts"
    if key is None or key == layout.NO_KEYS:
        return "a key in one of several columns"
    if any(frozenset() not in moves.loops[q] for q in initial) or not initial.isdisjoint(states):
        return "the first event of a key counts"
    return Strict([int(not moves.loops[q]) for q in states], key, links, texts_of(keys, links))


def _passing(tables: TransducerTables) -> Window | None:
    """The window of all matches if it passes at once for all keys."""
    window = window_of_runs(tables.transducer)
    if window is None or isinstance(window, AttributeWindow) or not is_global(window, tables.partitioned):
        return None
    return window


def _leads(
    tables: TransducerTables, relevant: Guards, waits: int
) -> tuple[list[list[int]], list[int], list[int], list[int], list[int]]:
    """`ScanArrays.leads`, `bit_leads` and `masks`, the states that have places, and the bit of each move.

    Events with one of the guards ``waits`` matter wherever runs wait.
    """
    moves = tables.moves
    initial, entered = tables.transducer.initial, {move.target for move in moves.rows} - {-1}
    states = sorted({move.transition.source for move in moves.rows} & entered)
    # By source, so that an event does not see its own effects.
    kinds = sorted({(move.transition.source, move.target, move.final) for move in moves.rows})
    bits = {kind: min(k, layout.MOVES - 1) for k, kind in enumerate(kinds)}
    leads = [
        [_place(states, source), _place(states, target), int(final), int(source in initial)]
        for source, target, final in kinds
    ]
    begins = [sum(found < bit for found in bits.values()) for bit in range(layout.MOVES + 1)]
    allowed = [0] * layout.GUARDS
    for move, needs in zip(moves.rows, moves.needs):
        guard = relevant.needing([needs])
        for k in range(layout.GUARDS):
            allowed[k] |= (guard >> k & 1) << bits[move.transition.source, move.target, move.final]
    masks = [
        reduce(or_, (allowed[k] for k in range(layout.GUARDS) if byte >> k & 1), layout.WAITS if byte & waits else 0)
        for byte in range(ALL + 1)
    ]
    return leads, begins, masks, states, [1 << bits[m.transition.source, m.target, m.final] for m in moves.rows]


def _place(states: Sequence[int], state: int) -> int:
    return states.index(state) if state in states else -1


def tied_columns(tables: TransducerTables) -> frozenset[int]:
    """The event columns on which all events of a match agree, because every move compares them with a register."""
    initial = tables.transducer.initial
    if any(move.target in initial for move in tables.moves.rows):
        return frozenset()
    if any(loops and frozenset() not in loops for loops in tables.moves.loops):
        # Events of other keys may end the waiting of a run.
        return frozenset()
    atoms = tables.arrays.atoms
    candidates = {int(a[engine_layout.A_LEFT]) for a in atoms if a[engine_layout.A_OPERATOR] == engine_layout.EQ}
    return frozenset(column for column in candidates if _is_tied(tables, column))


def _is_tied(tables: TransducerTables, column: int) -> bool:
    """Whether every move but a first one asks that the column equals what the events before have in it."""
    arrays, initial = tables.arrays, tables.transducer.initial
    entered = {move.target for move in tables.moves.rows} - {-1}
    # By state the slots that hold the value; fewer and fewer remain.
    held = {state: set(range(int(arrays.slots[state]))) for state in entered}
    changed = True
    while changed:
        changed = False
        for move in tables.moves.rows:
            if move.target < 0:
                continue
            kept = held[move.target] & _given(tables, move.number, column, held.get(move.transition.source, set()))
            changed |= kept != held[move.target]
            held[move.target] = kept
    return all(
        move.transition.source in initial
        or any(
            atom[engine_layout.A_OPERATOR] == engine_layout.EQ
            and atom[engine_layout.A_LEFT] == column
            and int(atom[engine_layout.A_RIGHT]) in held.get(move.transition.source, ())
            for atom in _atoms(tables, move.number)
        )
        for move in tables.moves.rows
    )


def _atoms(tables: TransducerTables, number: int) -> Sequence[Sequence[int]]:
    row = tables.arrays.transitions[number]
    found: list[list[int]] = tables.arrays.atoms[row[engine_layout.T_ATOM] : row[engine_layout.T_ATOM_END]].tolist()
    return found


def _given(tables: TransducerTables, number: int, column: int, held: set[int]) -> set[int]:
    """The slots of a move's target to which it gives the event's own value of a column, or what was ``held``."""
    arrays = tables.arrays
    row = arrays.transitions[number]
    copies = arrays.copies[row[engine_layout.T_COPY] : row[engine_layout.T_COPY_END]]
    steps = arrays.steps[row[engine_layout.T_STEP] : row[engine_layout.T_STEP_END]]
    written = {int(step[engine_layout.S_SLOT]) for step in steps}
    given = {int(copy[engine_layout.P_TARGET]) for copy in copies if int(copy[engine_layout.P_SOURCE]) in held}
    own = {
        int(step[engine_layout.S_SLOT])
        for step in steps
        if step[engine_layout.S_OPERATION] == engine_layout.WRITE
        and step[engine_layout.S_SOURCE] == engine_layout.FROM_COLUMN
        and step[engine_layout.S_INDEX] == column
    }
    return (given - written) | own
