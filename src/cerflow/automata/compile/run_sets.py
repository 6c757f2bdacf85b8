"""Sets of runs of a fragment that accompany another run, for UNLESS, WITHOUT, NEXT, LAST and MAX.

A run follows all runs of a set (rivals that would be preferred, a part that must not match) at once, as in the subset
construction (P1 §C.3, P2 §5.2). Configurations in states without memory are identified by their state. They become part
of the follower's own state, and only the sets that occur are built. A state with registers may hold many runs with
different values. These become rows of one collection register for each such state, so the automaton stays finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from cerflow.automata.model.fragment import Fragment, RegisterFile, reachable_states, with_own_beginning
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.automata.optimise.covering import AwaitedEvent, Field, covering_relations
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import grouped
from cerflow.base.operators import Operator
from cerflow.language.condition import Comparison, Condition, Expression, If, Literal, Not
from cerflow.language.formula import Window
from cerflow.language.node import Node
from cerflow.logic.conditions.cases import Case, CaseTree
from cerflow.logic.conditions.connectives import conjunction, conjuncts
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
        self.fragment = with_own_beginning(fragment)
        self.initial = frozenset(self.fragment.initial)
        self.final = frozenset(self.fragment.final)
        self._registers = registers
        self._live = self._live_registers()
        #: One of two rows in a state suffices if its fields compare in this way with those of the other.
        self._covering = covering_relations(
            self.fragment.transitions, self._live, registers.registers, AwaitedEvent(registers.instants, comes_later)
        )
        newest = self._states_with_newest() if alone else frozenset[int]()
        self._remembering = self._states_with_rows(newest)
        #: The register with the latest start of a window, for states that need no more.
        self._newest = {q: self._newest_register(q) for q in sorted(newest - self._remembering)}
        self._leaving = grouped(self.fragment.states, ((t.source, k) for k, t in enumerate(self.fragment.transitions)))
        self._collections: dict[tuple[str, int], int] = {}
        self._tree = CaseTree()
        self._guards: dict[tuple[int, bool], tuple[int, ...]] = {}
        self._known: dict[object, list[Case]] = {}
        self._rows: dict[tuple[str, Transition, bool], _Row] = {}
        self._work = 0

    # -- what the states remember --------------------------------------------------------------------------------

    def _live_registers(self) -> list[dict[int, int]]:
        """For each state its live registers, with the field at which each begins in a row."""
        fragment, registers = self.fragment, self._registers.registers
        self._needed: list[frozenset[int]] = []
        if not fragment.states:
            return []
        whole = fragment.finished(registers)
        self._needed = windows_needed(whole)
        found: list[dict[int, int]] = []
        for live in whole.live():
            places: dict[int, int] = {}
            width = 0
            for register in sorted(live):
                if registers[register].keeps is Accumulation.SET:
                    raise UnsupportedQueryError(
                        "a condition that has to remember a whole set of events is not allowed below UNLESS, WITHOUT, "
                        "NEXT, LAST or MAX",
                        hint="Comparisons with < <= > >= = over repeated events need no set.",
                    )
                places[register] = width
                width += registers[register].fields
            found.append(places)
        return found

    def _states_with_rows(self, newest: frozenset[int]) -> frozenset[int]:
        """States with live registers, and states that are reachable depending on a condition on such registers."""
        edges = [[t.target for t in leaving] for leaving in self.fragment.leaving()]
        return frozenset(
            reachable_states((q for q, places in enumerate(self._live) if places and q not in newest), edges)
        )

    def _states_with_newest(self) -> frozenset[int]:
        """States in which runs differ only in the start of their window."""
        windows = (tuple(self._registers.registers[r].window for r in places) for places in self._live)
        return frozenset(q for q, found in enumerate(windows) if len(found) == 1 and found[0] is not None)

    def _newest_register(self, state: int) -> int:
        (window,) = (self._registers.registers[register] for register in self._live[state])
        return self._registers.value(1, f"latest {window.meaning}")

    def _beginnings(self, state: int) -> dict[Expression, Expression]:
        """The content of a window register in a state that keeps only the latest start."""
        if state not in self._newest:
            return {}
        (register,) = self._live[state]
        return {Stored(register, 0): Stored(self._newest[state], 0)}

    def _width(self, state: int) -> int:
        registers = self._registers.registers
        return max(1, sum(registers[r].fields for r in self._live[state]))

    def collection(self, name: str, state: int) -> int:
        """The register with the rows of a state in the set of runs of that name."""
        key = (name, state)
        if key not in self._collections:
            meaning = "; ".join(self._registers.registers[r].meaning for r in self._live[state]) or "whether any"
            covering = tuple(self._covering[state].values()) or (None,)
            number = self._collections[key] = self._registers.add(
                Register(
                    Accumulation.SET, self._width(state), f"{name}: {meaning}", None, covering, self._windows(state)
                )
            )
            instants = self._registers.instants
            for k, field in enumerate(self._covering[state]):
                if field in instants:
                    instants[number, k] = instants[field]
        return self._collections[key]

    def _windows(self, state: int) -> tuple[Window | None, ...]:
        """For each field of a row the window that starts there, if the run must still meet it."""
        registers = self._registers.registers
        return tuple(registers[r].window if r in self._needed[state] else None for r, _ in self._covering[state])

    # -- steps ---------------------------------------------------------------------------------------------------

    def beginning(self) -> RunSet:
        """The runs that have not read anything."""
        return RunSet(self.initial)

    def cases(self, t: Transition, sources: Iterable[Source]) -> list[Case]:
        """The cases of an event for a transition ``t`` of the follower, as far as these runs distinguish them.

        Each case holds the transitions of the followed runs that it allows, by number. For states with rows it holds
        the transitions that the event alone allows; the collections decide about the rows. Raises
        `UnsupportedQueryError` if there are too many cases in all.
        """
        plain: set[int] = set()
        remembering: set[int] = set()
        for _, run_set, counts in sources:
            plain.update(k for q in run_set.states for k in self._leaving[q] if counts(self.fragment.transitions[k]))
            remembering.update(
                k for q in run_set.rows for k in self._leaving[q] if counts(self.fragment.transitions[k])
            )
        numbers = [*sorted(plain, key=self._place), *sorted(remembering, key=self._place)]
        key = (t.test, t.atoms, len(plain), tuple(numbers))
        if key not in self._known:
            # Many sets of runs have the same cases.
            guards = [self._guard(k, place < len(plain)) for place, k in enumerate(numbers)]
            self._known[key] = [
                Case(case.literals, frozenset(numbers[k] for k in case.held))
                for case in self._tree.cases([*conjuncts(t.test), *t.atoms], guards)
            ]
        self._work += len(self._known[key])
        if self._work > limits.RUN_SET_WORK:
            raise UnsupportedQueryError(
                "following all runs of a part of this formula takes more than "
                f"{limits.RUN_SET_WORK:,} steps to prepare",
                hint="Use fewer different conditions below UNLESS, WITHOUT, NEXT, LAST or MAX.",
            )
        return self._known[key]

    def _guard(self, k: int, plain: bool) -> tuple[int, ...]:
        """What a followed transition asks of the event, and in a state without rows all that it asks."""
        if (k, plain) not in self._guards:
            u = self.fragment.transitions[k]
            known = self._beginnings(u.source)
            atoms = [substitute(atom, known) for atom in u.atoms] if plain else []
            self._guards[k, plain] = self._tree.literals([*conjuncts(u.test), *atoms])
        return self._guards[k, plain]

    def _place(self, k: int) -> tuple[int, int]:
        return self.fragment.transitions[k].source, k

    def _moves(self, case: Case, sources: Sequence[Source]) -> Iterator[tuple[str, bool, Transition]]:
        """The transitions that runs of the sources may take: the name, whether they have rows, the transition."""
        for name, run_set, counts in sources:
            for state in sorted(run_set.states | run_set.rows):
                for k in self._leaving[state]:
                    u = self.fragment.transitions[k]
                    if k in case.held and counts(u):
                        yield name, state in run_set.rows, u

    def step(
        self, case: Case, target: str, sources: Sequence[Source], before: RunSet, empty: frozenset[int] = frozenset()
    ) -> tuple[RunSet, list[Write]]:
        """The set of runs ``target`` (``before`` until now) after the event, and its writes.

        It consists of all successors of the ``sources`` (names, sets of runs, which of their transitions count). The
        states in ``empty`` have none.
        """
        states: set[int] = set()
        kept: set[int] = set()
        rows: dict[int, list[_Row]] = {}
        begun: dict[int, dict[Expression, None]] = {}
        for name, remembered, u in self._moves(case, sources):
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

    def _row(self, name: str, u: Transition, remembered: bool) -> _Row:
        """The row of a run after a transition, and the conditions on its row before."""
        key = (name, u, remembered)
        if key not in self._rows:
            # Many sets of runs have the same runs.
            self._rows[key] = self._new_row(name, u, remembered)
        return self._rows[key]

    def _new_row(self, name: str, u: Transition, remembered: bool) -> _Row:
        registers = self._registers.registers
        old = self._beginnings(u.source)
        if remembered:
            collection = self.collection(name, u.source)
            for register, first in self._live[u.source].items():
                for k in range(registers[register].fields):
                    old[Stored(register, k)] = Stored(collection, first + k)
        row = self._after(u, old)
        if not remembered:
            # The case has decided its atoms.
            return tuple(row) or (Literal(0),), ()
        where = [substitute(atom, old) for atom in u.atoms]
        if not any(leaf.register == collection for e in [*row, *where] for leaf in _stored(e)):
            # All that counts of the old row is that it exists.
            where.append(Not(NoRow(Stored(collection, 0))))
        return tuple(row) or (Literal(0),), tuple(where)

    def _after(self, u: Transition, old: dict[Expression, Expression]) -> list[Expression]:
        """The contents of the live registers after a transition, given the contents of their fields before."""
        registers = self._registers.registers
        values: dict[Field, Expression] = {}
        for register in self._live[u.source]:
            for k in range(registers[register].fields):
                values[register, k] = old.get(Stored(register, k), Stored(register, k))
        for write in u.writes:
            if write.register not in self._live[u.target]:
                continue
            for k, expression in enumerate(write.row):
                new = substitute(expression, old)
                keeps = registers[write.register].keeps
                if not write.fresh and keeps is not Accumulation.VALUE:
                    new = _joined(keeps, values[write.register, k], new)
                values[write.register, k] = new
        return [values[field] for field in self._covering[u.target]]

    def none_covers(
        self, case: Case, sources: Sequence[Source], t: Transition, simulates: Callable[[int, int], bool]
    ) -> tuple[list[Condition], frozenset[int]] | None:
        """The guards under which no run of the sources covers a run after transition ``t``.

        A run covers it if its state ``simulates`` the run's state and its registers cover the run's registers. Returns
        also the states that have no rows then; None if some run always covers it.
        """
        guards: list[Condition] = []
        found: set[int] = set()
        waiting: set[int] = set()
        own = dict(zip(self._covering[t.target], self._after(t, {})))
        for name, remembered, u in self._moves(case, sources):
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

    def none_ends(self, case: Case, sources: Sequence[Source]) -> list[Condition] | None:
        """The guards under which no run of the sources enters a final state with this event; None if one does."""
        return self.none_enters(case, sources, self.final)

    def none_enters(self, case: Case, sources: Sequence[Source], states: frozenset[int]) -> list[Condition] | None:
        """The same for any states."""
        guards: list[Condition] = []
        for name, remembered, u in self._moves(case, sources):
            if u.target not in states:
                continue
            if not remembered:
                return None
            guards.append(self._no_row(name, u))
        return list(dict.fromkeys(guards))

    def _no_row(self, name: str, u: Transition) -> Condition:
        """That no row of the source allows a transition."""
        _, where = self._row(name, u, True)
        return self._none(where, name, u.source)

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
    match keeps:
        case Accumulation.SAME:
            return If(Comparison(Operator.EQ, former, new), former, unknown)
        case Accumulation.MIN:
            better, otherwise = Operator.LE, Operator.GT
        case Accumulation.MAX:
            better, otherwise = Operator.GE, Operator.LT
        case _:
            raise TypeError(f"a register that keeps {keeps} holds more than one value")
    return If(Comparison(better, former, new), former, If(Comparison(otherwise, former, new), new, unknown))


def _stored(root: Node) -> list[Stored]:
    return [leaf for leaf in leaves(root) if isinstance(leaf, Stored)]
