"""Probable mistakes in a formula: parts that never match, exclusions and branches of OR without effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import cast

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.optimise.growth import growing_collections, kept_values
from cerflow.base import limits
from cerflow.base.errors import QueryError, Span, UnsupportedQueryError, nearest
from cerflow.base.schema import Schema
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import AutomatonFormula, closed
from cerflow.language.condition import And
from cerflow.language.node import Node, fold, nested_operands, rebuild, walk, with_children
from cerflow.language.printer import show
from cerflow.logic.analysis.checks import looks_nowhere
from cerflow.logic.analysis.scopes import Scopes, condition_labels, labels_of, resolve
from cerflow.logic.conditions.connectives import split
from cerflow.logic.rewriting.rebuild import mentions_set, size, transformed
from cerflow.theory.deciding.equivalence import find_difference, shortest_match
from cerflow.theory.deciding.witnesses import Answer, Budget

#: Operators that can take all matches away, or that bring together what does not go together.
_RESTRICTING = (
    *(f.Filter, f.Conjunction, f.Exclusion, f.Selection, f.Start, f.Within),
    *(f.Repetition, f.StrictIteration, f.StrictSequence),
)


@dataclass(frozen=True)
class Remark:
    """A sentence about a place in the text of a formula (None: about the whole)."""

    text: str
    span: Span | None


def remarks(
    formula: f.Formula, *, window: f.Window | None = None, branches: bool = True, schema: Schema | None = None
) -> list[Remark]:
    """The remarks that are certain and found quickly; ``window`` is the query's, ``branches`` asks about OR.

    Raises `QueryError` for labels out of scope.
    """
    nodes = list(walk(formula))
    expressions = [n.expression for n in nodes if isinstance(n, r.Regular)]
    found = [remark for expression in expressions for remark in registers_never_written(expression)]
    unmarked = [remark for expression in expressions for remark in unmarked_ends(expression)]
    unmarked += [
        Remark("runs that end with an event they do not mark are not reported", n.span)
        for n in nodes
        if isinstance(n, AutomatonFormula) and n.anywhere and n.ends_marked and not _marks_its_ends(n)
    ]
    if unmarked:
        return found + unmarked
    if len(nodes) > limits.REMARK_NODES:
        return found
    scopes = resolve(formula)
    inquiry = _Inquiry(schema)
    try:
        transducer = compile_formula(formula)
        if len(transducer.transitions) > limits.REMARK_TRANSITIONS:
            return found
    except UnsupportedQueryError:
        return found
    dead = _dead_parts(nodes, scopes, inquiry)
    if inquiry.never_matches(formula, window):
        place = _place(nodes[dead[0]]) if dead else None
        return [*found, Remark("this query can never match", place or formula.span)]
    found += [Remark("this part can never match", _place(nodes[k])) for k in dead]
    found += _exclusions(formula, nodes, window, inquiry)
    for number in growing_collections(transducer)[:1]:
        text = (
            f"partial matches keep sets of values ({transducer.registers[number].meaning}), which may become as many "
            "as there are choices of events; a small window bounds them, comparisons other than <> need fewer, and a "
            "limit ends a run that needs too many"
        )
        found.append(Remark(text, None))
    if branches:
        found += [
            Remark("this branch of OR is redundant: all that it adds is found by the rest of the query", branch.span)
            for branch in _redundant_branches(formula, nodes, inquiry)
        ]
    return found


def remarks_on_no_match(
    formula: f.Formula, *, window: f.Window | None = None, schema: Schema | None = None
) -> list[Remark]:
    """The remarks on a formula that certainly has no match; none if that is not found quickly.

    Choices are not looked at: they only take matches away.
    """
    if not any(isinstance(n, r.Regular) and unmarked_ends(n.expression) for n in walk(formula)):
        formula = _without_choices(formula)
        if not _Inquiry(schema).never_matches(formula, window):
            return []
    return remarks(formula, window=window, branches=False, schema=schema)


def _without_choices(formula: f.Formula) -> f.Formula:
    """A formula without NEXT, LAST, MAX and ANY that has all matches of this one, and perhaps more.

    They are part of the automaton here, also where the engine chooses by itself, and may make it large.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        match current:
            case f.Selection(strategy) if strategy is not f.Strategy.STRICT:
                return below[0]
            case f.Exclusion(_, right) if any(isinstance(n, f.Selection) for n in walk(right)):
                return below[0]
        return with_children(current, below)

    return rebuild(formula, visit)


def kept_for_good(transducer: Transducer, *, detecting: bool) -> list[Remark]:
    """A remark if a query remembers values of its events for good."""
    kept = kept_values(transducer, detecting=detecting)
    if kept is None:
        return []
    text = (
        f"partial matches remember values ({kept.meaning}) for good: memory grows with the number of different values; "
        "a window around the formula (WITHIN) bounds it"
    )
    return [Remark(text, None)]


class _Inquiry:
    """Questions that may stay open; all of them share a limited number of steps."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._budget = Budget(limits.REMARK_STEPS)
        self._left = limits.REMARK_QUESTIONS

    def never_matches(self, formula: f.Formula, window: f.Window | None = None) -> bool:
        """Whether it is certain that a formula has no match within a window."""
        return self._certainly_not(shortest_match, window, formula)

    def same(self, first: f.Formula, second: f.Formula, window: f.Window | None = None) -> bool:
        """Whether it is certain that two formulas have the same matches within a window."""
        return self._certainly_not(find_difference, window, first, second)

    def _certainly_not(self, exists: Callable[..., Answer], window: f.Window | None, *formulas: f.Formula) -> bool:
        within = formulas if window is None else (f.Within(one, window) for one in formulas)
        self._left -= 1
        if self._left < 0 or self._budget.exhausted:
            return False
        try:
            return exists(*within, schema=self._schema, budget=self._budget).exists is False
        except (QueryError, UnsupportedQueryError):
            return False


def _dead_parts(nodes: list[Node], scopes: Scopes, inquiry: _Inquiry) -> list[int]:
    """The occurrences of the innermost parts that can never match."""
    branches = {id(b) for n in nodes if isinstance(n, f.Disjunction) for b in n.children}
    dead: list[int] = []
    for k, current in enumerate(nodes):
        if not isinstance(current, f.Formula) or not (isinstance(current, _RESTRICTING) or id(current) in branches):
            continue
        part = range(k + 1 - size(current), k + 1)
        # A condition in a part may speak of labels that are bound outside of it; then nothing is known.
        binders = (binder for inner in scopes.outer if inner in part for binder in scopes.outer[inner].values())
        known = all(binder in part for binder in binders) and not any(other in part for other in dead)
        if known and inquiry.never_matches(current):
            dead.append(k)
    return dead


def _exclusions(formula: f.Formula, nodes: list[Node], window: f.Window | None, inquiry: _Inquiry) -> Iterator[Remark]:
    """Remarks on every UNLESS, WITHOUT and NOT FOLLOWED BY that excludes nothing, or only by events before the match.

    The question is put without the conditions that relate events. Both sides then have more matches, so an exclusion
    without effect there has none here.
    """
    whole = formula
    while isinstance(whole, f.Filter | f.Within):
        whole = whole.operand
    read = frozenset(condition_labels(formula))
    for current in nodes:
        if not isinstance(current, f.Exclusion) or (isinstance(current, f.Without) and looks_nowhere(current)):
            continue
        yield from _labels_given_again(current)
        kept, excluded = _unrelated(current.left), _unrelated(current.right)
        place = current.right.span
        if isinstance(current, f.NotFollowedBy):
            if isinstance(current.window, f.CountWindow) and inquiry.never_matches(excluded, current.window):
                yield Remark(f"this excludes nothing: it can never match within {show(current.window)}", place)
            continue
        if inquiry.never_matches(kept) or inquiry.never_matches(excluded):
            continue
        if inquiry.same(type(current)(kept, excluded), kept, window):
            events = "from the first to the last event" if isinstance(current, f.Without) else "up to the last event"
            yield Remark(f"this excludes nothing: it can never match {events} of the part before it", place)
        elif _ends_at_any_event(current.left, read):
            yield Remark(
                "this excludes almost nothing: the part before it ends with any EVENT, so it has a match that is "
                "complete at the next event, whatever follows",
                place,
            )
        elif current is whole and isinstance(current, f.Unless):
            begun = f.Start(kept)
            if inquiry.same(f.Unless(begun, excluded), begun, window):
                yield Remark(
                    "this excludes only by events before the first event of a match: UNLESS looks at all events up "
                    "to the last one of the part before it, never at later events",
                    place,
                )


def _unrelated(formula: f.Formula) -> f.Formula:
    """The formula with only those conditions that are about one label it gives; it has all matches, and perhaps more.

    The formula itself where fewer conditions may mean fewer matches.
    """
    if any(isinstance(n, f.Exclusion | f.Selection) for n in walk(formula)):
        return formula

    def free(_: int, current: Node) -> Node:
        if not isinstance(current, f.Filter):
            return current
        given = labels_of(current.operand).assigned
        kept = [
            part
            for part in split(current.condition, And)
            if len(labels := condition_labels(part).keys()) == 1 and labels <= given and not mentions_set(part)
        ]
        return f.Filter(current.operand, reduce(And, kept), span=current.span) if kept else current.operand

    return transformed(formula, free)


def _labels_given_again(part: f.Exclusion) -> Iterator[Remark]:
    """Labels in conditions of the excluded part that it gives itself, though the other side gives them, too."""
    again = {n.label for n in walk(part.left) if isinstance(n, f.As)}
    again &= {n.label for n in walk(part.right) if isinstance(n, f.As)}
    for current in walk(part.right):
        if isinstance(current, f.Filter):
            for label, place in condition_labels(current.condition).items():
                if label in again:
                    again.remove(label)
                    yield Remark(
                        f"'{label}' means an event of the excluded part here, not the one before it", place.span
                    )


def _ends_at_any_event(part: f.Formula, read: frozenset[str]) -> bool:
    """Whether the last step of a sequence is EVENT, without a label in ``read``, the labels that conditions read."""
    while isinstance(part, f.Filter | f.Within):
        part = part.operand
    if not isinstance(part, f.Sequence):
        return False
    last, labels = part.right, set[str]()
    while isinstance(last, f.As):
        labels.add(last.label)
        last = last.operand
    return isinstance(last, f.AnyEvent) and last.stream is None and not labels & read


def _place(part: Node) -> Span | None:
    return (part.condition.span if isinstance(part, f.Filter) else None) or part.span


def _marks_its_ends(automaton: AutomatonFormula) -> bool:
    """Whether every transition into a final state, and into one with ε-transitions to it, marks its event."""
    leaving = automaton.leaving()
    return all(
        step.output or step.condition is None or automaton.finals.isdisjoint(closed((step.target,), leaving))
        for step in automaton.steps
    )


def _redundant_branches(formula: f.Formula, nodes: list[Node], inquiry: _Inquiry) -> Iterator[f.Formula]:
    """Branches without which the formula has the same matches; of several that stand for one another all but one."""
    inner = {id(child) for n in nodes if isinstance(n, f.Disjunction) for child in n.children}
    for k, current in enumerate(nodes):
        if not isinstance(current, f.Disjunction) or id(current) in inner:
            continue
        left = nested_operands(cast(f.Formula, current), f.Disjunction)
        for branch in reversed(left):
            rest = [other for other in left if other is not branch]
            without = _with(formula, k, reduce(f.Disjunction, rest))
            # Of a branch that never matches more is said elsewhere.
            if inquiry.same(formula, without) and not inquiry.never_matches(branch):
                left = rest
                yield branch
            if len(left) == 1:
                break


def _with(formula: f.Formula, occurrence: int, part: f.Formula) -> f.Formula:
    """The formula with another part at one place."""
    return transformed(formula, lambda k, current: part if k == occurrence else current)


def registers_never_written(expression: r.Sremo) -> Iterator[Remark]:
    """A remark on every register of an expression of SREMO that is read and nowhere written."""
    written = r.written_registers(expression)
    for register, place in condition_labels(expression).items():
        if register not in written:
            near = nearest(register, written)
            meant = f"did you mean '{near}'?" if near else f"a terminal writes it with INTO {register}"
            said = f"register '{register}' is read but never written, so conditions on it are false; {meant}"
            yield Remark(said, place.span)


def unmarked_ends(expression: r.Sremo) -> list[Remark]:
    """A remark on every part that may be last, if none of them marks its event."""
    last, _ = fold(expression, _last_parts)
    if any(map(_marks, last)):
        return []
    return [
        Remark(
            "this query can never match: a match ends with a marked event, but this part may read its last event and "
            "marks nothing; put MARK or AS label after the atom that completes a match",
            part.span,
        )
        for part in dict.fromkeys(last)
    ]


def _marks(part: r.Sremo) -> bool:
    """Whether a part marks its event; without any string there is nothing to say about marks."""
    return isinstance(part, r.Empty) or (isinstance(part, r.Terminal) and part.label is not None)


#: The parts that may be last in a string of an expression, and whether it has the empty string.
_Ends = tuple[tuple[r.Sremo, ...], bool]


def _last_parts(current: Node, below: Sequence[_Ends]) -> _Ends:
    parts = tuple(part for ends, _ in below for part in ends)
    match current:
        case r.Epsilon():
            return (), True
        case r.Empty() | r.Terminal():
            return (current,), False
        case r.Complement():
            return (current,), True
        case r.Star() | r.Optional():
            return parts, True
        case r.Concatenation() | r.AnyMatch() | r.NextMatch():
            last, empty = below[-1]
            for before, before_empty in reversed(below[:-1]):
                if empty:
                    last, empty = last + before, before_empty
            return last, empty
        case r.Intersection():
            marked = all(any(map(_marks, ends)) for ends, _ in below)
            return tuple(part for part in parts if marked or not _marks(part)), all(empty for _, empty in below)
    # Of alternatives and of operands in any order each may be last.
    return parts, any(empty for _, empty in below)
