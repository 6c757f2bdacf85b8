"""Determinisation on outputs: one run for every output (P1 Proposition 1), with the registers kept as registers.

States become sets of *members*: a state, and a copy of each register that is live there. Copies are identified by the
origin of their content, and renamed along transitions, as in tagged automata, so equal sets are recognised whatever was
read before. If two runs with one output reach one state with contents of different origin, the number of copies is
unbounded, and the sets have to be built at run time (`cerflow.engine.kernels.step.sets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Accumulation, Transducer, Transition, Write, asks_all_rows
from cerflow.automata.optimise.simplify import simplify
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import gathered
from cerflow.language.condition import Condition, Expression
from cerflow.logic.conditions.cases import contradicts, event_cases
from cerflow.logic.conditions.connectives import conjuncts, two_valued
from cerflow.logic.conditions.guards import C, InWindow, Measure, Stored, is_local, with_registers

_Labels = frozenset[str]
#: For each live register its copy.
_Copies = dict[int, int]
_NOTHING = frozenset[str]()


class _UnboundedError(Exception):
    """No set of this kind can represent all runs with one output, or there are too many."""


@dataclass(frozen=True)
class _Content:
    """The origin of the content of a copy: a copy before the event (none: nothing), and the values written to it."""

    old: int | None
    rows: tuple[tuple[tuple[Expression, ...], tuple[Condition, ...]], ...] = ()


#: For each live register of an entered state, its content.
_Contents = dict[int, _Content]
#: The contents in each state that is entered.
_Members = dict[int, _Contents]


@dataclass(frozen=True)
class _Set:
    """A state of the new transducer: the members, by state."""

    number: int
    members: Mapping[int, _Copies]


@dataclass(frozen=True)
class _Candidate:
    """A transition that a member of a set may take, with its guard on the copies."""

    transition: Transition
    copies: _Copies
    guard: Sequence[Condition]


def determinized_on_outputs(transducer: Transducer) -> Transducer | None:
    """A transducer that gives the same matches, each by one run; None if that needs unbounded memory.

    Registers are copied as often as a set of runs needs them. None also if the sets would exceed
    `limits.OUTPUT_STATES`, `limits.OUTPUT_TRANSITIONS` or `limits.OUTPUT_CASES`, or if runs could begin with the first
    event only.
    """
    if transducer.states > limits.OUTPUT_STATES or len(transducer.transitions) > limits.OUTPUT_TRANSITIONS:
        return None
    try:
        return _Determinization(transducer).run()
    except (_UnboundedError, UnsupportedQueryError):
        # The latter if an event is divided into too many cases.
        return None


class _Determinization:
    def __init__(self, transducer: Transducer) -> None:
        self._given = transducer
        self._live = transducer.live()
        self._leaving = transducer.leaving()
        self._windows = windows_needed(transducer)
        #: The registers of the new transducer, by register and copy.
        self._numbers: dict[tuple[int, int], int] = {}
        self._sets: dict[object, _Set] = {}
        self._pending: list[_Set] = []
        self._transitions: list[Transition] = []
        self._cases = 0
        #: A condition or expression with other numbers of registers; many transitions have the same.
        self._renamed = cache(_renamed)

    def run(self) -> Transducer:
        given = self._given
        if any(self._live[q] or q not in given.skipping for q in given.initial):
            raise _UnboundedError
        self._enter({q: {} for q in given.initial})
        while self._pending:
            current = self._pending.pop()
            leaving = gathered(
                (t.labels, _Candidate(t, copies, self._guards(t, copies)))
                for q, copies in current.members.items()
                for t in self._leaving[q]
            )
            for labels in (*sorted(leaving.keys() - {_NOTHING}, key=sorted), _NOTHING):
                self._step(current, labels, leaving.get(labels, []))
        # Matches end in the last state.
        last = len(self._sets)
        transitions = [t.moved(t.source, last) if t.target < 0 else t for t in self._transitions]
        if not any(t.source == 0 and t.skips for t in transitions):
            raise _UnboundedError
        whole = Fragment(last + 1, {0}, {last}, transitions)
        registers = [given.registers[register] for register, _ in self._numbers]
        return simplify(whole, registers, given.window, given.mentioned)

    def _number(self, register: int, copy: int) -> int:
        return self._numbers.setdefault((register, copy), len(self._numbers))

    def _guards(self, t: Transition, copies: _Copies) -> list[Condition]:
        """The guards of a transition of a member, on the copies of its registers."""
        numbers = tuple(self._numbered(copies).items())
        return [self._renamed(condition, numbers) for condition in (*conjuncts(t.test), *t.atoms)]

    def _numbered(self, copies: _Copies) -> dict[int, int]:
        return {r: self._number(r, copy) for r, copy in copies.items()}

    def _contents(self, candidate: _Candidate) -> _Contents:
        """The contents of the live registers after a transition."""
        copies = candidate.copies
        numbers = tuple(self._numbered(copies).items())
        found = {r: _Content(copies.get(r)) for r in sorted(self._live[candidate.transition.target])}
        for write in candidate.transition.writes:
            if write.register in found:
                row = tuple(self._renamed(e, numbers) for e in write.row)
                where = tuple(self._renamed(c, numbers) for c in write.where)
                before = _Content(None) if write.fresh else found[write.register]
                found[write.register] = _Content(before.old, (*before.rows, (row, where)))
        return found

    def _step(self, current: _Set, labels: _Labels, candidates: Sequence[_Candidate]) -> None:
        """The successors at an event with these labels; without any, some members stay, others have to move or die."""
        stay: dict[int, _Copies] = {}
        common: list[Condition] = []
        if labels:
            # Conditions that all of them share need not be negated.
            first, *others = (candidate.guard for candidate in candidates)
            common = [c for c in first if all(c in other for other in others)]
        else:
            able = self._given.skipping - self._given.final
            stay = {q: copies for q, copies in current.members.items() if q in able}
            candidates = [candidate for candidate in candidates if not self._adds_nothing(candidate, stay)]
            if not candidates and len(stay) == len(current.members):
                self._transitions.append(Transition(current.number, current.number))
                return
        for literals, held in self._divided(current, common, candidates):
            if held or not labels:
                after = {q: {r: _Content(copy) for r, copy in copies.items()} for q, copies in stay.items()}
                for candidate in held:
                    target = candidate.transition.target
                    if self._leaving[target]:
                        contents = self._contents(candidate)
                        known = after.get(target, contents)
                        after[target] = contents if known == contents else self._better(known, contents)
                detects = any(candidate.transition.target in self._given.final for candidate in held)
                self._add(current, literals, labels, after, detects)

    def _adds_nothing(self, candidate: _Candidate, stay: Mapping[int, _Copies]) -> bool:
        """Whether a run only gets to a state where another one stays."""
        target = candidate.transition.target
        if target in self._given.final or target not in stay:
            return target not in self._given.final and not self._leaving[target]
        return self._contents(candidate) == {r: _Content(copy) for r, copy in stay[target].items()}

    def _divided(
        self, current: _Set, required: Sequence[Condition], candidates: Sequence[_Candidate]
    ) -> Iterable[tuple[list[Condition], list[_Candidate]]]:
        """The cases of an event, with the open transitions in each.

        A window that every member still has to meet makes no case: once it has passed, the set can no longer match.
        """
        doomed = frozenset[int].intersection(*(self._windows[q] for q in current.members))
        numbers = {self._numbers[key] for key in self._numbers if key[0] in doomed}

        def ends(condition: Condition) -> bool:
            return isinstance(condition, InWindow) and condition.start.register in numbers

        # A condition on all rows of a collection can be tested, but not negated.
        undeniable = [c for c in required if self._asks_all_rows(c)]
        if any(self._asks_all_rows(c) and c not in undeniable for candidate in candidates for c in candidate.guard):
            raise _UnboundedError
        guards = {
            k: tuple(two_valued(c) for c in candidate.guard if not ends(c) and c not in undeniable)
            for k, candidate in enumerate(candidates)
        }
        for case in event_cases([c for c in required if not ends(c) and c not in undeniable], guards):
            self._cases += 1
            if self._cases > limits.OUTPUT_CASES:
                raise _UnboundedError
            # A combination that no event satisfies is not a case.
            if sum(not is_local(c) for c in case.literals) < 2 or not contradicts(case.literals):
                held = [candidates[k] for k in sorted(case.held)]
                ending = dict.fromkeys(c for candidate in held for c in candidate.guard if ends(c))
                yield [*case.literals, *undeniable, *ending], held

    def _asks_all_rows(self, condition: Condition) -> bool:
        registers = list(self._numbers)
        return asks_all_rows(condition, lambda number: self._given.registers[registers[number][0]])

    def _better(self, one: _Contents, other: _Contents) -> _Contents:
        """The content of a state that allows more: a window that has begun later."""
        differing = [r for r in one if one[r] != other[r]]
        for better, worse in ((one, other), (other, one)):
            if all(self._begins_now(r, better[r]) and not worse[r].rows for r in differing):
                return better
        raise _UnboundedError

    def _begins_now(self, register: int, content: _Content) -> bool:
        window = self._given.registers[register].window
        return window is not None and content == _Content(None, (((Measure(window),), ()),))

    def _enter(self, after: _Members) -> tuple[_Set, dict[tuple[int, _Content], int]]:
        """The set after an event, and the copy that takes each content."""
        members = dict(sorted(after.items()))
        order: dict[int, dict[_Content, int]] = {}
        for contents in members.values():
            for register, content in contents.items():
                places = order.setdefault(register, {})
                places.setdefault(content, len(places))
        self._check_windows(members, order)
        key = tuple((q, tuple((r, order[r][c]) for r, c in contents.items())) for q, contents in members.items())
        known = self._sets.get(key)
        if known is None:
            # Contents that are carried along stay in place.
            copies = {(r, c): copy for r, places in order.items() for c, copy in _placed(places).items()}
            placed = {q: {r: copies[r, c] for r, c in contents.items()} for q, contents in members.items()}
            known = self._sets[key] = _Set(len(self._sets), placed)
            self._pending.append(known)
            if len(self._sets) > limits.OUTPUT_STATES:
                raise _UnboundedError
            return known, copies
        return known, {(r, c): known.members[q][r] for q, contents in members.items() for r, c in contents.items()}

    def _check_windows(self, members: Mapping[int, _Contents], order: Mapping[int, Mapping[_Content, int]]) -> None:
        """Starts of windows that pass one after another, or for some members only, leave sets that differ forever."""
        if len(members) < 2:
            return
        for register, places in order.items():
            if self._given.registers[register].window is not None and (
                len(places) > 1 or not all(register in self._windows[q] for q in members)
            ):
                raise _UnboundedError

    def _add(
        self, current: _Set, literals: Sequence[Condition], labels: _Labels, after: _Members, detects: bool
    ) -> None:
        """Add the transitions to the successors with one event; -1 is the state in which matches end."""
        whole = Transition(current.number, -1, labels=labels).guarded(literals)
        if detects:
            self._transitions.append(whole)
        if after:
            target, copies = self._enter(after)
            writes = [write for (r, c), copy in copies.items() for write in self._writes(r, c, copy)]
            self._transitions.append(replace(whole, target=target.number, writes=tuple(writes)))
        if len(self._transitions) > limits.OUTPUT_TRANSITIONS:
            raise _UnboundedError

    def _writes(self, register: int, content: _Content, copy: int) -> list[Write]:
        """The writes that give a copy a content."""
        kept = self._given.registers[register]
        number = self._number(register, copy)
        writes: list[Write] = []
        if content.old is not None and content.old != copy:
            if kept.keeps is Accumulation.SET:
                # Copying rows would cost more with every row.
                raise _UnboundedError
            source = self._number(register, content.old)
            writes.append(Write(number, tuple(Stored(source, k) for k in range(kept.fields)), fresh=True))
        for row, where in content.rows:
            fresh = content.old is None and not writes
            writes.append(Write(number, row, fresh, where))
        return writes


def _renamed(tree: C, numbers: tuple[tuple[int, int], ...]) -> C:
    return with_registers(tree, dict(numbers))


def _placed(places: Mapping[_Content, int]) -> dict[_Content, int]:
    """A copy for each content: contents that are carried along keep their copy, if no other has taken it."""
    found: dict[_Content, int] = {}
    taken: set[int] = set()
    for content in sorted(places, key=lambda c: (c.old is None, bool(c.rows), places[c])):
        if content.old is not None and content.old not in taken:
            copy = content.old
        else:
            # Not one in which a content without a copy yet would rather stay.
            wanted = {c.old for c in places if c not in found}
            copy = next(k for k in count() if k not in taken and k not in wanted)
        found[content] = copy
        taken.add(copy)
    return found
