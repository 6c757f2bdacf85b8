"""Transducers evaluated by the definition of runs: slow, for short lists of events.

A run reads the events from the first on, one transition each. It begins in an initial state with empty registers. A
transition may be taken if its test and all its atoms are true; unknown is not true, and an empty register reads as
null. `Satisfied` gives the papers' two-valued reading, in which an atom over an empty register is false and its
negation true. Complex events hold positions in the list of events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from typing import Any, TypeVar

from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.automata.model.transducer import TYPE_LABEL, Accumulation, Transducer, Transition, Write, registers_read
from cerflow.base.errors import QueryError
from cerflow.base.events import ComplexEvent, Event, Stream, StreamGiven, Value, as_stream, support
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window
from cerflow.language.node import Node, transform
from cerflow.language.predicates.asking import arguments_of_sets, as_argument, ask_of_set
from cerflow.language.predicates.registry import registered
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import conjuncts, constant
from cerflow.logic.conditions.evaluate import compare, value_on

#: The content of a register: nothing yet, a row of values, or the rows of a collection.
Content = tuple[Value, ...] | frozenset[tuple[Value, ...]] | None
Memory = tuple[Content, ...]
S = TypeVar("S", bound=Hashable)
M = TypeVar("M", bound=Hashable)
#: The state, the registers and the complex event of a run, and whether the last event read is part of it.
PartialRun = tuple[S, M, ComplexEvent, bool]


def partial_runs(
    begin: Iterable[tuple[S, M]],
    steps: Callable[[S, M, int], Iterable[tuple[S, M, ComplexEvent]]],
    length: int,
    *,
    anywhere: bool = False,
) -> Iterator[set[PartialRun[S, M]]]:
    """The runs before the first of ``length`` events and after each of them; ``anywhere``: they begin at every event.

    ``steps`` gives from a state and registers, at an event, the next ones with the pairs of labels and position that
    the event adds. Runs that are equal have the same future and are one.
    """
    first: set[PartialRun[S, M]] = {(state, memory, frozenset(), False) for state, memory in begin}
    current = first
    yield current
    for position in range(length):
        current = {
            (after, written, labelled | given, bool(given))
            for state, memory, labelled, _ in (current | first if anywhere else current)
            for after, written, given in steps(state, memory, position)
        }
        yield current


def matches(transducer: Transducer, events: StreamGiven, *, reporting: bool = False) -> set[tuple[int, ComplexEvent]]:
    """All (n, C) such that some run over the events 0 … n enters a final state with the last one and labels C.

    With ``reporting`` only runs that label their last event count, as in complex event automata, register match
    automata and symbolic register transducers (P1 §6, 003 Def. 7, 004 Def. 24). All runs must meet the window of the
    transducer. Raises `QueryError` for a window of time over events without times.
    """
    events = as_stream(events)
    reader = RunReader(transducer, events)

    def steps(state: int, memory: Memory, position: int) -> Iterator[tuple[int, Memory, ComplexEvent]]:
        for t, after in reader.steps(state, memory, position):
            yield t.target, after, reader.labelled(t, position)

    begin = [(state, reader.empty) for state in transducer.initial]
    return {
        (n, labelled)
        for n, runs in enumerate(partial_runs(begin, steps, len(events)), -1)
        for state, _, labelled, marked in runs
        if n >= 0 and (marked or not reporting) and reader.accepts(state, support(labelled))
    }


class RunReader:
    """One transducer over one list of events, perhaps with ticks and pauses, which windows of events do not count.

    Conditions on one event alone are evaluated once.
    """

    def __init__(self, transducer: Transducer, events: Sequence[Event]) -> None:
        self.transducer = transducer
        self.events = events
        self.empty: Memory = (None,) * len(transducer.registers)
        self.leaving = transducer.leaving()
        self._counts = list(accumulate(event.type not in (TICK.type, PAUSE.type) for event in events))
        self._ends_labelled = all(t.labels for t in transducer.transitions if t.target in transducer.final)
        self._asked: dict[tuple[c.Condition, int, tuple[Content, ...]], bool] = {}

    def labelled(self, t: Transition, position: int) -> ComplexEvent:
        """The pairs that a transition adds to the complex event."""
        own = self.events[position].type
        return frozenset((own if label == TYPE_LABEL else label, position) for label in t.labels)

    def accepts(self, state: int, places: Collection[int]) -> bool:
        """Whether a run that has just entered a state detects its complex event, which has events at these places."""
        window = self.transducer.window
        return state in self.transducer.final and (window is None or self._within(window, places))

    def outlived(self, places: Collection[int], position: int) -> bool:
        """Whether no event from a position on can complete, in the transducer's window, a run with events at places.

        A run that ends without another event of its own is asked when it ends.
        """
        window = self.transducer.window
        if window is None or not places or not self._ends_labelled:
            return False
        return self.over(window, self.measure(window, min(places)), position)

    def steps(self, state: int, memory: Memory, position: int) -> Iterator[tuple[Transition, Memory]]:
        """The transitions that a run may take, and the registers after each."""
        for t in self.leaving[state]:
            if self.fires(t, position, memory):
                yield t, self.written(t, position, memory)

    def fires(self, t: Transition, position: int, memory: Memory) -> bool:
        """Whether a transition may be taken."""
        return all(self._holds(condition, position, memory) for condition in (t.test, *t.atoms))

    def passes(self, t: Transition, position: int) -> bool:
        """Whether an event passes the test of a transition, which reads no registers."""
        return self._holds(t.test, position, self.empty)

    def refusing(self, t: Transition, position: int, memory: Memory) -> list[c.Condition]:
        """The parts of a transition's guard that are not true."""
        return [part for part in (*conjuncts(t.test), *t.atoms) if not self._holds(part, position, memory)]

    def over(self, window: Window, start: int | float | None, position: int) -> bool:
        """Whether a window that began where its measure was ``start`` is over at an event, as far as that shows it."""
        now = self.measure(window, position)
        return start is None or (now is not None and not now - start < self.size(window))

    def _holds(self, atom: c.Condition, position: int, memory: Memory) -> bool:
        """Whether an atom is true; with a collection, whether it is true for every row."""
        registers = tuple(sorted(registers_read([atom])))
        key = (atom, position, tuple(memory[r] for r in registers))
        if key not in self._asked:
            self._asked[key] = all(
                self._evaluate(atom, position, rows, memory) is True for rows in choices(_ranging([atom]), memory)
            )
        return self._asked[key]

    def _evaluate(self, root: Node, position: int, rows: dict[int, tuple[Value, ...] | None], memory: Memory) -> Value:
        """The value of a guard or expression on the event at a position, some rows and all registers."""
        single: dict[str | None, Event | None] = {None: self.events[position]}

        def value(current: Node) -> Value:
            return value_on(current, single)

        def known(current: Node) -> Node:
            match current:
                case guards.Measure():
                    return _literal(self.measure(current.window, position))
                case guards.SetCall():
                    kept = None if current.rows is None else memory[current.rows.register]
                    own = [value(argument) for argument in current.arguments]
                    truth = _asked_of_sets(current, kept if isinstance(kept, frozenset) else (), own)
                    return constant(truth)
                case guards.Stored() if not isinstance(current, guards.AllRows):
                    row = rows[current.register]
                    found: Any = None if row is None else row[current.field]
                    if not isinstance(found, Event):
                        return _literal(found)
                    # A predicate's argument for a whole event has a name that no label has.
                    single[f"\0{found.position}"] = found
                    return c.LabelReference(f"\0{found.position}")
                case guards.NoRow():
                    return c.Constant(False)
                case guards.InWindow(c.Literal(begun), window):
                    now: Any = self.measure(window, position)
                    return constant(None if None in (begun, now) else now - begun < self.size(window))
            return current

        return value(transform(root, known))

    def _within(self, window: Window, positions: Collection[int]) -> bool:
        """Whether events lie inside a window; an empty set always does."""
        if not positions:
            return True
        first, last = (self.measure(window, position) for position in (min(positions), max(positions)))
        return first is not None and last is not None and last - first < self.size(window)

    def size(self, window: Window) -> int | float | Fraction:
        """The size of a window in what `measure` gives."""
        match window:
            case CountWindow():
                return window.events
            case DurationWindow():
                assert isinstance(self.events, Stream)  # it has been measured
                return self.events.ticks(window.microseconds)
            case AttributeWindow():
                return window.size
        raise TypeError(f"{type(window).__name__} is not a window")

    def measure(self, window: Window, position: int) -> int | float | None:
        """The place, time or attribute of an event that a window compares; None if the event has none."""
        match window:
            case CountWindow():
                return self._counts[position] - 1
            case DurationWindow():
                if not isinstance(self.events, Stream) or self.events.microseconds_per_tick is None:
                    raise QueryError("a window of time needs events with times", span=window.span)
                time = self.events[position].time
                # Registers hold whole microseconds.
                return math.floor(time) if isinstance(time, Fraction) else time
            case AttributeWindow():
                found = self.events[position].attribute(window.attribute)
                return found if isinstance(found, int | float) else None
        raise TypeError(f"{type(window).__name__} is not a window")

    def written(self, t: Transition, position: int, memory: Memory) -> Memory:
        """The registers after a transition; all reads precede all writes."""
        if not t.writes:
            return memory
        after = list(memory)
        for write in t.writes:
            former = None if write.fresh else after[write.register]
            keeps = self.transducer.registers[write.register].keeps
            after[write.register] = kept(keeps, former, self._rows(write, position, memory))
        return tuple(after)

    def _rows(self, write: Write, position: int, memory: Memory) -> list[tuple[Value, ...]]:
        """The rows that a write stores: several if it reads registers with collections."""
        return [
            tuple(self._evaluate(expression, position, rows, memory) for expression in write.row)
            for rows in choices(_ranging([*write.row, *write.where]), memory)
            if all(self._evaluate(condition, position, rows, memory) is True for condition in write.where)
        ]


def choices(registers: Sequence[int], memory: Memory) -> Iterator[dict[int, tuple[Value, ...] | None]]:
    """One row for each register; a collection contributes each of its rows in turn."""
    contents = [memory[r] for r in registers]
    rows = [sorted(content, key=repr) if isinstance(content, frozenset) else [content] for content in contents]
    for choice in product(*rows):
        yield dict(zip(registers, choice))


def _ranging(roots: Iterable[Node]) -> tuple[int, ...]:
    """The registers that are read one row at a time."""
    # Not those that are read as `AllRows`.
    return tuple(sorted({n.register for root in roots for n in guards.leaves(root) if type(n) is guards.Stored}))


def _asked_of_sets(call: guards.SetCall, earlier: Iterable[tuple[Value, ...]], here: Sequence[Value]) -> bool | None:
    """The answer for events whose rows begin with their positions, with arguments at the current event."""
    rows = [[*map(as_argument, row[1:])] for row in sorted(earlier, key=lambda row: row[0])]  # type: ignore[arg-type,return-value]
    kept = [0 <= number < call.gathered for number in call.sets]
    own = [as_argument(value) for value, is_kept in zip(here, kept) if call.here or not is_kept]
    return ask_of_set(registered(call.name), arguments_of_sets(call.sets, call.gathered, rows, own, call.here))


def _literal(value: Value) -> c.Literal:
    return c.Literal(value)  # type: ignore[arg-type]  # registers hold timestamps too


def kept(keeps: Accumulation, former: Content, rows: Iterable[tuple[Value, ...]]) -> Content:
    """The content of a register after these rows are written to it, one by one."""
    if keeps is Accumulation.SET:
        assert former is None or isinstance(former, frozenset)
        return (former or frozenset()) | frozenset(rows)
    for row in rows:
        assert not isinstance(former, frozenset)
        former = row if former is None else tuple(_joined(keeps, a, b) for a, b in zip(former, row))
    return former


def _joined(keeps: Accumulation, former: Value, new: Value) -> Value:
    """The value that a register keeps of two, the second written later."""
    match keeps:
        case Accumulation.VALUE:
            return new
        case Accumulation.SAME:
            return former if compare(Operator.EQ, former, new) else None
        case Accumulation.MIN | Accumulation.MAX:
            better = Operator.LT if keeps is Accumulation.MIN else Operator.GT
            if former is None or new is None:
                return None
            return new if compare(better, new, former) else former
    raise TypeError(f"a register that keeps {keeps} is written row by row")
