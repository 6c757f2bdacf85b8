"""The rows of a batch that a run can use, by the automaton's states alone.

Backwards, a run can still end from some states; forwards, a run can be in some states. A row matters if one of its
moves joins the two. Windows bound both, and each key has states of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cerflow.automata.model.run_windows import window_of_runs
from cerflow.engine import layout as engine_layout
from cerflow.engine.evaluate.measures import is_global
from cerflow.engine.scan import layout
from cerflow.engine.scan.program.contiguous import key_column, texts_of
from cerflow.engine.scan.program.emitting import ScannedColumns
from cerflow.engine.scan.program.guards import ALL, Guards
from cerflow.engine.scan.program.leads import Leads, leads_of
from cerflow.engine.scan.program.links import Links, rows_of_move
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import AttributeWindow, CountWindow, Window

#: Events of a window that never passes.
_ENDLESS = CountWindow(2**62)


@dataclass(frozen=True)
class Flow:
    """What `ScanArrays` needs for the flow.

    ``window`` bounds all matches, or is None; ``reach`` are the outputs that measure it. For the last event of a match
    one of the guards ``last`` holds. All events of a match agree on the outputs ``keyed``. It says whether rows are
    ruled out ``backwards`` and ``forwards``, whether the ``first`` event matters even if it begins no match, whether
    the guards that hold ``tell`` what an event does, and how ``by_key`` where events end runs of their key.
    """

    window: Window | None
    reach: Sequence[Sequence[int]]
    last: int
    leads: Leads
    keyed: Sequence[Sequence[int]]
    backwards: bool
    forwards: bool
    first: bool
    tell: bool
    by_key: ByKey | None

    @property
    def tells_keys(self) -> bool:
        """Whether each key has runs of its own, by the key itself or by its hash."""
        return self.by_key is not None or len(self.keyed) > 0

    @property
    def rests(self) -> bool:
        """Whether the rows of a large batch tell its kernel itself where to leave rows as they are."""
        return self.by_key is None and (self.window is not None or not self.keyed)

    @property
    def waits(self) -> bool:
        """Whether runs wait for deadlines."""
        return self.by_key is not None and self.by_key.waits


@dataclass(frozen=True)
class ByKey:
    """How keys are told apart, each of which is a stream of its own.

    ``waits`` says that deadlines end runs, ``counted`` what it matters of events of a key that are left out: `NEITHER`,
    `WHETHER` or `HOW_MANY`. ``key``, ``links`` and ``texts`` are as in `Contiguity`, but the bits of links are those of
    moves in `ScanArrays.leads`.
    """

    waits: bool
    counted: int
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
    before = [tables.moves.loops[state] for state in tables.transducer.initial]
    if any(loops and frozenset() not in loops for loops in before):
        return "an event may end what is before the first event of a match"
    first = [] in before
    if first and (tables.partitioned or tables.arrays.options[engine_layout.O_CONSUME]):
        return "the first event counts, of a key or behind a match"
    window = _passing(tables)
    ends = [move.needs for move in tables.moves.rows if move.final]
    forwards = tables.transducer.states <= engine_layout.STATE_BITS
    waits = relevant.ending() if any(frozenset() not in loops for loops in tables.moves.waiting) else 0
    leads = leads_of(tables, relevant, outputs, to, waits)
    if isinstance(leads, str):
        return leads
    if window is None and not forwards:
        return "no window bounds all matches, and the automaton has too many states"
    keyed, by_key = [row for row in outputs if row[layout.O_TO] == layout.TO_KEYS], None
    if tables.counted or tables.ticking or leads.strict:
        many = "events end runs, and the automaton has too many states"
        found = _by_key(tables, keyed, leads, outputs, to) if forwards else many
        if isinstance(found, ByKey):
            by_key = found
        elif tables.counted or tables.ticking or first:
            return found
    if by_key is None:
        tied = tied_columns(tables)
        keyed += [row for row in outputs if row[layout.O_TO] == layout.TO_COLUMNS and row[layout.O_PLACE] in tied]
    return Flow(
        window,
        [measured(window or _ENDLESS, False), measured(window or _ENDLESS, True)],
        ALL if frozenset() in ends else relevant.needing(ends),
        leads,
        keyed,
        window is not None or leads.bounded,
        forwards,
        first,
        # The first event is kept whatever guards it has.
        relevant.tells and not first,
        by_key,
    )


def _by_key(
    tables: TransducerTables,
    keys: Sequence[Sequence[int]],
    leads: Leads,
    outputs: Sequence[Sequence[int]],
    to: ScannedColumns,
) -> ByKey | str:
    """How keys are told apart, or why the flow cannot tell what an event of a key ends."""
    moves, initial, key = tables.moves, tables.transducer.initial, key_column(keys)
    windows = [tables.transducer.window, *(column.window for column in tables.columns)]
    other = any(isinstance(w, AttributeWindow) for w in windows) or len(tables.arrays.checked) > 0
    if tables.schema.forget is not None or other:
        return "every event counts"
    if key is None:
        return "a key in one of several columns"
    if tables.ticking:
        consumed = tables.arrays.options[engine_layout.O_CONSUME]
        if tables.counted or tables.reached or consumed or tables.transducer.window is not None:
            return "deadlines, and another window, CONSUME, or events that all count"
        return ByKey(True, layout.NEITHER, key, (), texts_of(keys))
    if any(frozenset() not in moves.loops[q] for q in initial) or not initial.isdisjoint(leads.states):
        return "the first event of a key counts"
    links = Links(tables, outputs, to).rows(leads.of_moves)[0]
    counted = layout.HOW_MANY if any(isinstance(w, CountWindow) for w in windows) else layout.WHETHER
    return ByKey(False, counted if tables.counted else layout.NEITHER, key, links, texts_of(keys))


def _passing(tables: TransducerTables) -> Window | None:
    """The window of all matches if it passes at once for all keys."""
    window = window_of_runs(tables.transducer)
    if isinstance(window, AttributeWindow) and tables.schema.column(window.attribute) in tables.schema.ascending:
        return window
    if window is None or isinstance(window, AttributeWindow) or not is_global(window, tables.partitioned):
        return None
    return window


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
            for atom in rows_of_move(tables, move.number, engine_layout.T_ATOM)
        )
        for move in tables.moves.rows
    )


def _given(tables: TransducerTables, number: int, column: int, held: set[int]) -> set[int]:
    """The slots of a move's target to which it gives the event's own value of a column, or what was ``held``."""
    steps = rows_of_move(tables, number, engine_layout.T_STEP)
    given = {target for target, source, _ in rows_of_move(tables, number, engine_layout.T_COPY) if source in held}
    read = [engine_layout.WRITE, engine_layout.FROM_COLUMN, column]
    own = {slot for operation, slot, *read_from, _, _ in steps if [operation, *read_from] == read}
    return (given - {slot for _, slot, *_ in steps}) | own
