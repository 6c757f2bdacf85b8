"""Formula to transducer: one construction per operator, bottom-up (P1 Theorem 3, P2 Theorem 6.2; with registers)."""

from __future__ import annotations

from functools import reduce
from typing import cast

from cerflow.automata.compile import deadlines
from cerflow.automata.compile.aggregates import between_bounds, gather
from cerflow.automata.compile.automaton import compile_automaton
from cerflow.automata.compile.conditions import read_on_event, several
from cerflow.automata.compile.filters import apply_filter, neighbours
from cerflow.automata.compile.negation import EventsRead, unless, without
from cerflow.automata.compile.products import both, both_in_time, product_all
from cerflow.automata.compile.repetition import needs_counter, repeat
from cerflow.automata.compile.selection import preferred
from cerflow.automata.compile.sremo.expressions import compile_sremo
from cerflow.automata.compile.waiting import Reference, resolve_reference
from cerflow.automata.compile.windows import begin_at_once, contiguous, hides_events, know_ends, restrict
from cerflow.automata.model.clock import on_events, with_patience
from cerflow.automata.model.fragment import Fragment, RegisterFile, atom, marks, relabel, sequence, union
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.automata.optimise.simplify import simplify
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import gathered
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.builder.given import of_formula
from cerflow.language.node import Node, fold_only, transform, walk
from cerflow.language.sremo import Regular, Windowed
from cerflow.logic.analysis.scopes import Scopes, above, condition_labels, occurrences, relation_names, resolve
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.rewriting.rebuild import without_some


def hoist_window(formula: f.Formula, window: f.Window | None) -> tuple[f.Formula, f.Window | None]:
    """A query without a window takes over the window around its whole formula."""
    while window is None:
        match formula:
            case f.Within():
                window = formula.window
                formula = formula.operand
            case Regular(Windowed() as expression):
                window = expression.window
                formula = Regular(expression.operand, span=formula.span)
            case _:
                break
    return formula, window


@of_formula
def compile_formula(
    formula: f.Formula,
    *,
    window: f.Window | None = None,
    keep: frozenset[str] | None = None,
    named: frozenset[str] = frozenset(),
    marks: bool = False,
    choice: f.Strategy | None = None,
    by: frozenset[str] = frozenset(),
) -> Transducer:
    """The transducer that detects a complex event C at n exactly if the formula does.

    ``window`` bounds the extent of C. ``keep`` projects on those labels afterwards (None keeps all). ``named`` are
    labels used outside the formula. With ``marks``, an event that ``keep`` leaves without labels gets `HIDDEN_LABEL`,
    so that the support stays the same. A ``choice``, with labels ``by``, is made among the complex events in the
    window. But if it is MAX and the transducer has a window, C is not compared with those that begin before it. Raises
    `QueryError` for labels out of scope, and `UnsupportedQueryError` for a formula that needs an unbounded or too large
    automaton.
    """
    formula, window = hoist_window(_with_joined_filters(formula), window)
    shown = None if marks else keep
    compared = keep is None or by <= keep

    def compiled(compiler: _FormulaCompiler) -> tuple[Fragment, f.Window | None]:
        whole, left = deadlines.ended_later(compiler.run()), window
        if left is not None and (hides_events(whole, shown) or not compared or choice not in (None, f.Strategy.MAX)):
            # The engine measures and compares reported events, which are not all events here, and chooses no others.
            whole, left = restrict(whole, left, compiler.registers), None
        elif left is not None:
            whole = know_ends(whole, left)
        if choice is not None:
            try:
                whole = preferred(whole, choice, compiler.registers, by, each_start=left is not None)
            except UnsupportedQueryError as error:
                error.span = error.span or formula.span
                raise
        return whole, left

    named |= by | (keep or frozenset())
    compiler = _FormulaCompiler(formula, named, windowed=window is not None)
    try:
        whole, left = compiled(compiler)
    except UnsupportedQueryError:
        if not compiler.counted:
            raise
        # Some constructions cannot follow counters.
        compiler = _FormulaCompiler(formula, named, windowed=window is not None, count=False)
        whole, left = compiled(compiler)
    if keep is not None:
        hidden = frozenset((HIDDEN_LABEL,)) if marks else frozenset[str]()
        whole = relabel(whole, lambda labels: labels & keep or hidden)
    return simplify(whole, compiler.registers.registers, left, compiler.mentioned)


def _with_joined_filters(formula: f.Formula) -> f.Formula:
    """One filter instead of several around the same formula; a long chain would be applied one by one."""

    def join(current: Node) -> Node:
        if isinstance(current, f.Filter) and isinstance(current.operand, f.Filter):
            inner = current.operand
            return f.Filter(inner.operand, c.And(inner.condition, current.condition), span=current.span)
        return current

    return transform(formula, join)


#: Formulas, beside repetitions without gaps, in whose runs ticks and pauses may come where no event may.
_IMPATIENT = (f.StrictIteration, f.StrictSequence, f.Start, f.Embedded)


class _FormulaCompiler:
    """The fold over one formula; ``scopes`` and the fold number occurrences in the same way."""

    def __init__(self, formula: f.Formula, named: frozenset[str], *, windowed: bool, count: bool = True) -> None:
        self.formula = formula
        self.windowed = windowed
        #: Whether runs may read ticks and pauses besides events.
        self.ticking = deadlines.waits_for_ticks(formula)
        #: Whether large repetitions may be counted in registers, and whether some are.
        self.count = count
        self.counted = False
        self.scopes: Scopes = resolve(formula)
        self._places = occurrences(formula)
        self._above = above(self._places)
        self.registers = RegisterFile()
        self.mentioned = relation_names(formula) | _named_labels(formula) | named
        # The labels that each formula has to resolve: those it binds for filters below it.
        self.binds = gathered({(scope, label) for one in self.scopes.outer.values() for label, scope in one.items()})

    def run(self) -> Fragment:
        def visit(index: int, current: f.Formula, below: list[Fragment]) -> Fragment:
            try:
                built = self._build(current, index, below)
                strictly = isinstance(current, f.Repetition) and current.strict
                if self.ticking and (strictly or isinstance(current, _IMPATIENT)):
                    built = with_patience(built)
                for label in sorted(self.binds.get(index, ())):
                    built = resolve_reference(built, label, index, self.registers)
            except UnsupportedQueryError as error:
                # Constructions know only automata; the error gets the place of the operator.
                error.span = error.span or current.span
                raise
            return built

        return fold_only(self.formula, f.Formula, visit)

    def _build(self, current: f.Formula, index: int, below: list[Fragment]) -> Fragment:
        match current:
            case f.Disjunction():
                return union(*below)
            case f.Conjunction():
                late = any(map(deadlines.ends_late, below))
                return both_in_time(*below) if late else both(*below)
            case f.Iteration() | f.StrictIteration():
                strict = isinstance(current, f.StrictIteration)
                return repeat(below[0], f.Repetition(current.operand, 1, None, strict), None)
            case f.Start():
                return begin_at_once(*below)
            case f.EventType():
                step = Transition(0, 1, guards.event_test(current), labels=frozenset((current.name,)))
                return atom([on_events(step) if self.ticking else step])
            case f.AnyEvent():
                stream = None if current.stream is None else guards.StreamTest(current.stream)
                return atom(self._any_type(stream, current))
            case f.NotEvent():
                return self._not_event(current, index)
            case f.Join():
                return self._joined(current, below)
            case f.Repetition():
                count = self.count and needs_counter(below[0], current)
                self.counted |= count
                return repeat(below[0], current, self.registers if count else None)
            case f.As():
                label = current.label
                return relabel(below[0], lambda labels: labels | {label})
            case f.Rename():
                old, new = current.old, current.new
                return relabel(below[0], lambda labels: (labels - {old}) | {new} if old in labels else labels)
            case f.Project():
                kept = frozenset(current.labels)
                return relabel(below[0], lambda labels: labels & kept)
            case f.Embedded():
                regular = (
                    compile_automaton(current, self.registers)
                    if isinstance(current, AutomatonFormula)
                    else compile_sremo(cast(Regular, current).expression, self.registers, windowed=self.windowed)
                )
                if not self.ticking:
                    return regular
                events = [t if t.skips else on_events(t) for t in regular.transitions]
                return regular.with_transitions(events)
            case f.Within():
                return restrict(below[0], current.window, self.registers)
            case f.Selection(f.Strategy.STRICT):
                return contiguous(below[0], ticking=self.ticking)
            case f.Selection(strategy):
                return preferred(below[0], strategy, self.registers, frozenset(current.names))
            case f.Unless():
                return unless(below[0], below[1], self.registers, self._events_read(index))
            case f.Without():
                return without(below[0], below[1], self.registers, self._events_read(index))
            case f.NotFollowedBy():
                read = self._events_read(index)
                window, ticking = current.window, self.ticking
                return deadlines.not_followed_by(below[0], below[1], window, read, self.registers, ticking=ticking)
            case f.Filter():
                return self._filter(below[0], current.condition, index)
        raise TypeError(f"{type(current).__name__} is not a formula")

    def _joined(self, current: f.Join, below: list[Fragment]) -> Fragment:
        optional = (f.can_be_absent(current.left), f.can_be_absent(current.right))
        if isinstance(current, f.All):
            alone = [operand.copy() for operand, other in zip(below, reversed(optional)) if other]
            return reduce(union, alone, product_all(*below))
        if isinstance(current, f.StrictSequence) and deadlines.ends_late(below[0]):
            return deadlines.sequence_in_time(below[0], below[1], optional)
        return sequence(below[0], below[1], optional, marks if isinstance(current, f.StrictSequence) else None)

    def _any_type(self, check: c.Condition | None, event: f.OfAnyType, never: str | None = None) -> list[Transition]:
        """One transition for every named type but ``never``, labelled with it unless hidden, and one for all others.

        If all events have one type, that is one transition; no event has a type that is absent.
        """
        named = self.mentioned.union(event.hidden) - event.absent
        known = [guards.TypeTest(name) for name in sorted(named)]
        label = {name: f.UNNAMED if name in event.hidden else name for name in named}
        cases: list[tuple[c.Condition, str]]
        if event.only is not None:
            cases = [(c.Constant(True), label.get(event.only, TYPE_LABEL))]
        else:
            cases = [(test, label[test.type]) for test in known if test.type != never]
            cases.append((conjunction([c.Not(test) for test in known]), TYPE_LABEL))
        result = []
        for test, name in cases:
            t = Transition(0, 1, labels=frozenset((name,))).guarded([test] if check is None else [test, check])
            result.append(on_events(t) if self.ticking else t)
        return result

    def _not_event(self, current: f.NotEvent, index: int) -> Fragment:
        test = guards.event_test(current.event)
        if current.condition is not None:
            own = current.event.name
            scopes = {**self.scopes.outer[index], own: index}
            # One event is read, so AND, OR and NOT on the complex event equal those on the event.
            labels = {name: scopes[name] for name in condition_labels(current.condition)}
            resolved = guards.separate(gather(without_some(current.condition), labels.keys()), labels)
            test = c.And(test, read_on_event(resolved, lambda leaf: leaf.scope == index))
        never = test.type if isinstance(test, guards.TypeTest) and test.stream is None else None
        return atom(self._any_type(c.Not(guards.Satisfied(test)), current, never))

    def _events_read(self, index: int) -> EventsRead:
        """The events that have been read wherever the formula at an occurrence is looked for."""
        labels = self.scopes.labels
        passed = frozenset[str]()
        before: set[Reference] = set()
        here = index
        while here in self._above:
            around = self._above[here]
            current, (first, *_) = self._places[around]
            match current:
                case f.Sequence() | f.StrictSequence() if here != first:
                    passed |= labels[first].bound
                case f.As() | f.Rename() | f.Project():
                    passed = frozenset()
                case f.Exclusion() if here != first:
                    passed = frozenset()
            before |= {(label, around) for label in passed & labels[around].bound}
            here = around
        return EventsRead(index, frozenset(before))

    def _filter(self, operand: Fragment, condition: c.Condition, index: int) -> Fragment:
        outer = self.scopes.outer[index]
        scopes = {label: outer.get(label, index) for label in condition_labels(condition)}
        bound = self.scopes.labels[index].bound
        # EVENT may give a bound label to a second event, if its type has that name.
        one = outer.keys() | (bound - several(operand, bound))

        def resolve(part: c.Condition) -> c.Condition:
            found = neighbours(part, scopes, index, one)
            if found is not None:
                return found
            if isinstance(part, c.Some) and not condition_labels(part).keys() <= one:
                bounds = between_bounds(part)
                if bounds is None:
                    return c.Some(part.labels, guards.separate(gather(part.condition, one), scopes), span=part.span)
                part = bounds
            return guards.separate(gather(without_some(part), one), scopes)

        return apply_filter(operand, condition, resolve, scopes, index, self.registers)


def _named_labels(formula: f.Formula) -> frozenset[str]:
    """Labels that some operator tells apart from others: an event of a type called so must be distinguished too."""
    found: set[str] = set()
    for current in walk(formula):
        if isinstance(current, f.Formula):
            found.update(current.names)
        if isinstance(current, f.Filter | f.NotEvent) and current.condition is not None:
            found.update(condition_labels(current.condition))
    return frozenset(found)
