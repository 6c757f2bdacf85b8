"""Sets of runs of a fragment that accompany another run, for UNLESS, WITHOUT, NEXT, LAST and MAX.

A run follows all runs of a set (rivals that would be preferred, a part that must not match) at once, as in the subset
construction (P1 §C.3, P2 §5.2). Configurations in states without memory are identified by their state. They become part
of the follower's own state, and only the sets that occur are built. A state with registers may hold many runs with
different values. These become rows of one collection register for each such state, so the automaton stays finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce

from cerflow.automata.model.fragment import Fragment, RegisterFile
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write, registers_read
from cerflow.automata.optimise.covering import AwaitedEvent, covering_relations
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import grouped, reached_along
from cerflow.base.operators import Operator
from cerflow.language.condition import Comparison, Condition, Expression, If, Literal, Not
from cerflow.logic.conditions.cases import Case, GuardLiteral, event_cases
from cerflow.logic.conditions.connectives import conjunction, conjuncts, two_valued
from cerflow.logic.conditions.guards import NoRow, Of, Satisfied, Stored, leaves, substitute


@dataclass(frozen=True)
class RunSet:
    """A set of configurations: certain states without memory, and states that may have rows in their collection."""

    states: frozenset[int] = frozenset()
    rows: frozenset[int] = frozenset()

    def within(self, states: frozenset[int]) -> RunSet:
        """The part of this set that is in these states."""
        return RunSet(self.states & states, self.rows & states)


EMPTY = RunSet()


#: The values of a run's registers, and the conditions under which it has them.
_Row = tuple[tuple[Expression, ...], tuple[Condition, ...]]

#: Runs to follow: their name, the set, and which of their transitions count.
Source = tuple[str, RunSet, Callable[[Transition], bool]]
#: A transition that runs of a name may take, and whether these have rows.
Move = tuple[str, bool, Transition]


def every(_: Transition) -> bool:
    """That each transition counts."""
    return True


class FollowedRuns:
    """The runs of one fragment, followed in any number of named sets.

    If there is only one set (``alone``), runs that remember only the start of their window need no collection. Among
    those in one state, the run that began last is in its window whenever any other is, so it represents them all.
    """

    def __init__(
        self,
        fragment: Fragment,
        registers: RegisterFile,
        *,
        alone: bool = False,
        comes_later: Callable[[Of], bool] = lambda _: False,
    ) -> None:
        self.fragment = fragment.with_own_beginning()
        self.initial = frozenset(self.fragment.initial)
        self.final = frozenset(self.fragment.final)
        self._registers = registers
        whole = self.fragment.finished(registers.registers)
        self._live = [sorted(live) for live in whole.live()]
        if any(registers.registers[r].keeps is Accumulation.SET for live in self._live for r in live):
            raise UnsupportedQueryError(
                "a condition that has to remember a whole set of events is not allowed below UNLESS, WITHOUT, "
                "NEXT, LAST or MAX",
                hint="Comparisons with < <= > >= = over repeated events need no set.",
            )
        self._needed = windows_needed(whole)
        #: For each state the fields of a row, and how those of another row compare that makes it unnecessary.
        self._covering = covering_relations(
            self.fragment.transitions, self._live, registers.registers, AwaitedEvent(registers.instants, comes_later)
        )
        # In these runs differ only in the start of their window.
        only = {q: registers.registers[live[0]] for q, live in enumerate(self._live) if alone and len(live) == 1}
        newest = {q: register for q, register in only.items() if register.window is not None}
        edges = ((t.source, t.target) for t in self.fragment.transitions)
        #: States with live registers, and states that are reachable depending on a condition on such registers.
        self._remembering = reached_along(edges, (q for q, live in enumerate(self._live) if live and q not in newest))
        #: The register with the latest start of a window, for states that need no more.
        self._newest = {
            q: registers.value(1, f"latest {newest[q].meaning}") for q in sorted(newest.keys() - self._remembering)
        }
        self._leaving = grouped(self.fragment.states, ((t.source, k) for k, t in enumerate(self.fragment.transitions)))
        self._known: dict[object, list[Case]] = {}
        self._work = 0
        # Many sets of runs have the same runs.
        self.collection = cache(self._new_collection)
        self._guard = cache(self._new_guard)
        self._row = cache(self._new_row)

    def _beginnings(self, state: int) -> dict[Expression, Expression]:
        """The content of a window register in a state that keeps only the latest start."""
        if state not in self._newest:
            return {}
        (register,) = self._live[state]
        return {Stored(register, 0): Stored(self._newest[state], 0)}

    def _new_collection(self, name: str, state: int) -> int:
        """The register with the rows of a state in the set of runs of that name."""
        registers, covering = self._registers.registers, self._covering[state]
        meaning = "; ".join(registers[r].meaning for r in self._live[state]) or "whether any"
        # The window that starts with a field, if the run must still meet it.
        windows = tuple(registers[r].window if r in self._needed[state] else None for r, _ in covering)
        relations = tuple(covering.values()) or (None,)
        number = self._registers.add(
            Register(Accumulation.SET, len(relations), f"{name}: {meaning}", None, relations, windows)
        )
        instants = self._registers.instants
        instants.update({(number, k): instants[field] for k, field in enumerate(covering) if field in instants})
        return number

    def beginning(self) -> RunSet:
        """The runs that have not read anything."""
        return RunSet(self.initial)

    def cases(self, t: Transition, sources: Iterable[Source]) -> list[Case]:
        """The cases of an event for a transition ``t`` of the follower, as far as these runs distinguish them.

        Each case holds the transitions of the followed runs that it allows, by number. For states with rows it holds
        the transitions that the event alone allows; the collections decide about the rows. Raises
        `UnsupportedQueryError` if there are too many cases in all.
        """
        transitions = self.fragment.transitions
        plain, remembering = set[int](), set[int]()
        for _, run_set, counts in sources:
            for states, found in ((run_set.states, plain), (run_set.rows, remembering)):
                found.update(k for q in states for k in self._leaving[q] if counts(transitions[k]))
        numbers = [k for found in (plain, remembering) for k in sorted(found, key=lambda k: (transitions[k].source, k))]
        key = (t.test, t.atoms, len(plain), tuple(numbers))
        if key not in self._known:
            # Many sets of runs have the same cases.
            guards = {k: self._guard(k, k in plain) for k in numbers}
            self._known[key] = list(event_cases([*conjuncts(t.test), *t.atoms], guards))
        self._work += len(self._known[key])
        if self._work > limits.RUN_SET_WORK:
            raise UnsupportedQueryError(
                "following all runs of a part of this formula takes more than "
                f"{limits.RUN_SET_WORK:,} steps to prepare",
                hint="Use fewer different conditions below UNLESS, WITHOUT, NEXT, LAST or MAX.",
            )
        return self._known[key]

    def _new_guard(self, k: int, plain: bool) -> tuple[GuardLiteral, ...]:
        """What a followed transition asks of the event, and in a state without rows all that it asks."""
        u = self.fragment.transitions[k]
        known = self._beginnings(u.source)
        atoms = [substitute(atom, known) for atom in u.atoms] if plain else []
        return tuple(map(two_valued, [*conjuncts(u.test), *atoms]))

    def moves(self, case: Case, sources: Sequence[Source]) -> list[Move]:
        """The transitions that runs of the sources may take in a case."""
        transitions = self.fragment.transitions
        return [
            (name, state in run_set.rows, transitions[k])
            for name, run_set, counts in sources
            for state in sorted(run_set.states | run_set.rows)
            for k in self._leaving[state]
            if k in case.held and counts(transitions[k])
        ]

    def step(
        self, target: str, moves: Sequence[Move], before: RunSet, empty: frozenset[int] = frozenset()
    ) -> tuple[RunSet, list[Write]]:
        """The runs ``target``, until now ``before``, after some moves, and their writes; ``empty`` states have none."""
        states: set[int] = set()
        kept: set[int] = set()
        rows: dict[int, list[_Row]] = {}
        begun: dict[int, dict[Expression, None]] = {}
        for name, remembered, u in moves:
            if not self._leaving[u.target] or u.target in empty:
                continue
            if u.target not in self._remembering:
                states.add(u.target)
                if u.target in self._newest:
                    begun.setdefault(u.target, {})[self._row(name, u, False)[0][0]] = None
            elif u.stays and remembered and name == target:
                kept.add(u.target)
            else:
                rows.setdefault(u.target, []).append(self._row(name, u, remembered))
        writes = [write for state in sorted(begun) for write in self._latest(state, list(begun[state]))]
        for state in sorted(rows):
            register = self.collection(target, state)
            goes_on = state in kept and state in before.rows
            for row, where in dict.fromkeys(rows[state]):
                writes.append(Write(register, row, not goes_on, where))
                goes_on = True
        return RunSet(frozenset(states), frozenset(kept | rows.keys())), writes

    def _latest(self, state: int, beginnings: list[Expression]) -> list[Write]:
        """The latest start of a window among runs that enter a state; the current event is later than all others."""
        latest = next((e for e in beginnings if not leaves(e)), None)
        if latest is None:
            latest = reduce(lambda former, new: _joined(Accumulation.MAX, former, new), beginnings)
        if latest == Stored(self._newest[state], 0):
            return []
        return [Write(self._newest[state], (latest,), fresh=True)]

    def _new_row(self, name: str, u: Transition, remembered: bool) -> _Row:
        """The row of a run after a transition, and the conditions on its row before."""
        old = self._beginnings(u.source)
        if remembered:
            collection = self.collection(name, u.source)
            old |= {Stored(*field): Stored(collection, k) for k, field in enumerate(self._covering[u.source])}
        row = self._after(u, old)
        if not remembered:
            # The case has decided its atoms.
            return tuple(row) or (Literal(0),), ()
        where = [substitute(atom, old) for atom in u.atoms]
        if collection not in registers_read([*row, *where]):
            # All that counts of the old row is that it exists.
            where.append(Not(NoRow(Stored(collection, 0))))
        return tuple(row) or (Literal(0),), tuple(where)

    def _after(self, u: Transition, old: dict[Expression, Expression]) -> list[Expression]:
        """The contents of the live registers after a transition, given the contents of their fields before."""
        registers = self._registers.registers
        before = {field: Stored(*field) for field in self._covering[u.source]}
        values = {field: old.get(stored, stored) for field, stored in before.items()}
        for write in u.writes:
            if write.register not in self._live[u.target]:
                continue
            for k, expression in enumerate(write.row):
                new = substitute(expression, old)
                if not write.fresh:
                    new = _joined(registers[write.register].keeps, values[write.register, k], new)
                values[write.register, k] = new
        return [values[field] for field in self._covering[u.target]]

    def none_covers(
        self, moves: Sequence[Move], t: Transition, simulates: Callable[[int, int], bool]
    ) -> tuple[list[Condition], frozenset[int]] | None:
        """The guards under which no run after these moves covers a run after transition ``t``.

        A run covers it if its state ``simulates`` the run's state and its registers cover the run's registers. Returns
        also the states that have no rows then; None if some run always covers it.
        """
        guards: list[Condition] = []
        found: set[int] = set()
        waiting: set[int] = set()
        own = dict(zip(self._covering[t.target], self._after(t, {})))
        for name, remembered, u in moves:
            if not self._leaving[u.target] or not simulates(u.target, t.target):
                continue
            if u.target not in self._remembering:
                return None
            relations = self._covering[u.target]
            if not any(relations.values()):
                found.add(u.target)
            elif u.target != t.target or (remembered and u.stays and t.stays):
                continue  # decided later, or unchanged
            row, where = self._row(name, u, remembered)
            compared = (
                Comparison(relation, value, own[field])
                for (field, relation), value in zip(relations.items(), row)
                if relation is not None and value != own[field]
            )
            asked = [*where, *compared]
            if any(isinstance(leaf, Of) for condition in asked for leaf in leaves(condition)):
                # An event that is not known yet would have to wait for another.
                waiting.add(u.target)
            elif not asked:
                return None
            else:
                guards.append(self._none(asked, name, u.source if remembered else None))
        return list(dict.fromkeys(guards)), frozenset(found - waiting)

    def none_enters(self, moves: Sequence[Move], states: frozenset[int]) -> list[Condition] | None:
        """The guards under which no run enters one of these states with these moves; None if one does."""
        entering = [move for move in moves if move[2].target in states]
        if not all(remembered for _, remembered, _ in entering):
            return None
        found = (self._none(self._row(name, u, True)[1], name, u.source) for name, _, u in entering)
        return list(dict.fromkeys(found))

    def _none(self, where: Iterable[Condition], name: str, state: int | None) -> Condition:
        """That not all of these hold, for any row of a state if one is given."""
        if state is None:
            return Not(Satisfied(conjunction(list(where))))
        present = Not(NoRow(Stored(self.collection(name, state), 0)))
        if set(where) <= {present}:
            return present.operand
        # Even if the conditions are not about the row, they can only be violated by a row that exists.
        return Not(Satisfied(conjunction([*where, present])))


def _joined(keeps: Accumulation, former: Expression, new: Expression) -> Expression:
    """The value that a register keeps of two; null if null makes that unknown."""
    unknown = Literal(None)
    if keeps is Accumulation.VALUE:
        return new
    if keeps is Accumulation.SAME:
        return If(Comparison(Operator.EQ, former, new), former, unknown)
    least = keeps is Accumulation.MIN
    better, otherwise = (Operator.LE, Operator.GT) if least else (Operator.GE, Operator.LT)
    return If(Comparison(better, former, new), former, If(Comparison(otherwise, former, new), new, unknown))
