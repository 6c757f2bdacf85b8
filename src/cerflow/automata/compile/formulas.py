"""Formula to transducer: one construction per operator, bottom-up (P1 Theorem 3, P2 Theorem 6.2; with registers)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from functools import reduce

from cerflow.analysis.scopes import Scopes, condition_labels, occurrences_above, relation_names, resolve
from cerflow.automata.compile.aggregates import between_bounds, gather, without_some
from cerflow.automata.compile.automaton import compile_automaton
from cerflow.automata.compile.conditions import several
from cerflow.automata.compile.contiguity import begin_at_once, contiguous
from cerflow.automata.compile.deadlines import (
    ended_later,
    ends_late,
    not_followed_by,
    sequence_in_time,
    waits_for_ticks,
)
from cerflow.automata.compile.filters import apply_filter
from cerflow.automata.compile.negation import EventsRead, unless, without
from cerflow.automata.compile.neighbours import neighbours
from cerflow.automata.compile.products import both, both_in_time, product_all
from cerflow.automata.compile.references import resolve_reference
from cerflow.automata.compile.repetition import needs_counter, repeat
from cerflow.automata.compile.selection import preferred
from cerflow.automata.compile.sremo.expressions import compile_sremo
from cerflow.automata.compile.waiting import Reference
from cerflow.automata.compile.windows import hides_events, know_ends, restrict
from cerflow.automata.model.clock import on_events, with_patience
from cerflow.automata.model.fragment import (
    Fragment,
    atom,
    iterate,
    iterate_strictly,
    relabel,
    sequence,
    sequence_strictly,
    union,
)
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.automata.optimise.simplify import simplify
from cerflow.conditions.connectives import conjunction
from cerflow.conditions.guards import (
    Of,
    Satisfied,
    StreamTest,
    TypeTest,
    event_test,
    is_local,
    leaves,
    separate,
    substitute,
)
from cerflow.errors import UnsupportedQueryError
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import (
    And,
    Condition,
    Constant,
    Expression,
    Not,
    Some,
)
from cerflow.language.formula import (
    UNNAMED,
    All,
    AnyEvent,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Exclusion,
    Filter,
    Formula,
    Iteration,
    NotEvent,
    NotFollowedBy,
    Project,
    Rename,
    Repetition,
    Selection,
    Sequence,
    Start,
    Strategy,
    StrictIteration,
    StrictSequence,
    Unless,
    Window,
    Within,
    Without,
    can_be_absent,
)
from cerflow.language.node import Node, fold, transform, walk
from cerflow.language.sremo import Regular, Windowed

__all__ = ["compile_formula", "hoist_window"]


def hoist_window(formula: Formula, window: Window | None) -> tuple[Formula, Window | None]:
    """A query without a window takes over the window around its whole formula."""
    while window is None:
        match formula:
            case Within():
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
    formula: Formula,
    *,
    window: Window | None = None,
    keep: frozenset[str] | None = None,
    named: frozenset[str] = frozenset(),
    marks: bool = False,
    choice: Strategy | None = None,
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

    def compiled(compiler: _FormulaCompiler) -> tuple[Fragment, Window | None]:
        whole, left = ended_later(compiler.run()), window
        if left is not None and (hides_events(whole, shown) or not compared or choice not in (None, Strategy.MAX)):
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


def _labels_compared(choice: Selection) -> frozenset[str]:
    """The labels after BY; empty if all events are compared."""
    return frozenset(str(reference.label) for reference in choice.by)


def _with_joined_filters(formula: Formula) -> Formula:
    """One filter instead of several around the same formula; a long chain would be applied one by one."""

    def join(current: Node) -> Node:
        if isinstance(current, Filter) and isinstance(current.operand, Filter):
            inner = current.operand
            return Filter(inner.operand, And(inner.condition, current.condition), span=current.span)
        return current

    joined = transform(formula, join)
    assert isinstance(joined, Formula)
    return joined


class _FormulaCompiler:
    """The fold over one formula; ``scopes`` and the fold number occurrences in the same way."""

    def __init__(self, formula: Formula, named: frozenset[str], *, windowed: bool, count: bool = True) -> None:
        self.formula = formula
        self.windowed = windowed
        #: Whether runs may read ticks and pauses, beside events.
        self.ticking = waits_for_ticks(formula)
        #: Whether large repetitions may be counted in registers, and whether some are.
        self.count = count
        self.counted = False
        self.scopes: Scopes = resolve(formula)
        self._nodes, self._parents = list(walk(formula)), occurrences_above(formula)
        self._first = {above: k for k, above in sorted(self._parents.items(), reverse=True)}
        self.registers = RegisterFile()
        self.mentioned = relation_names(formula) | _named_labels(formula) | named
        # The labels that each formula has to resolve: those it binds for filters below it.
        self.binds: dict[int, set[str]] = {}
        for bindings in self.scopes.outer.values():
            for label, scope in bindings.items():
                self.binds.setdefault(scope, set()).add(label)

    def run(self) -> Fragment:
        index = -1

        def visit(current: Node, below: Many[Fragment | None]) -> Fragment | None:
            nonlocal index
            index += 1
            if not isinstance(current, Formula):
                return None
            try:
                built = self._build(current, index, [b for b in below if b is not None])
                for label in sorted(self.binds.get(index, ())):
                    built = resolve_reference(built, label, index, self.registers)
            except UnsupportedQueryError as error:
                # Constructions know only automata; the error gets the place of the operator.
                error.span = error.span or current.span
                raise
            return built

        whole = fold(self.formula, visit)
        assert whole is not None
        return whole

    def _build(self, current: Formula, index: int, below: list[Fragment]) -> Fragment:
        simple: dict[type[Formula], Callable[..., Fragment]] = {
            Disjunction: union,
            Iteration: iterate,
            StrictIteration: iterate_strictly,
            Conjunction: both,
            Start: begin_at_once,
        }
        if self.ticking and any(map(ends_late, below)):
            if isinstance(current, StrictIteration):
                return with_patience(repeat(below[0], Repetition(current.operand, 1, None, True), None))
            if isinstance(current, Conjunction):
                return both_in_time(*below)
        construction = simple.get(type(current))
        if construction is not None:
            built = construction(*below)
            return with_patience(built) if self.ticking and isinstance(current, StrictIteration | Start) else built
        match current:
            case EventType():
                step = Transition(0, 1, event_test(current), labels=frozenset((current.name,)))
                return atom([on_events(step) if self.ticking else step])
            case AnyEvent():
                stream = None if current.stream is None else StreamTest(current.stream)
                return atom(self._any_type(stream, current))
            case NotEvent():
                return self._not_event(current, index)
            case Sequence() | StrictSequence() | All():
                return self._joined(current, below)
            case Repetition():
                count = self.count and needs_counter(below[0], current)
                self.counted |= count
                repeated = repeat(below[0], current, self.registers if count else None)
                return with_patience(repeated) if self.ticking and current.strict else repeated
            case As():
                label = current.label
                return relabel(below[0], lambda labels: labels | {label})
            case Rename():
                old, new = current.old, current.new
                return relabel(below[0], lambda labels: (labels - {old}) | {new} if old in labels else labels)
            case Project():
                kept = frozenset(current.labels)
                return relabel(below[0], lambda labels: labels & kept)
            case Regular() | AutomatonFormula():
                regular = (
                    compile_automaton(current, self.registers)
                    if isinstance(current, AutomatonFormula)
                    else compile_sremo(current.expression, self.registers, windowed=self.windowed)
                )
                if not self.ticking:
                    return regular
                events = [t if t.skips else on_events(t) for t in regular.transitions]
                return with_patience(regular.with_transitions(events))
            case Within():
                return restrict(below[0], current.window, self.registers)
            case Selection(Strategy.STRICT):
                return contiguous(below[0], ticking=self.ticking)
            case Selection(strategy):
                return preferred(below[0], strategy, self.registers, _labels_compared(current))
            case Unless():
                return unless(below[0], below[1], self.registers, self._events_read(index))
            case Without():
                return without(below[0], below[1], self.registers, self._events_read(index))
            case NotFollowedBy():
                read = self._events_read(index)
                return not_followed_by(below[0], below[1], current.window, read, self.registers, ticking=self.ticking)
            case Filter():
                return self._filter(below[0], current.condition, index)
        raise TypeError(f"{type(current).__name__} is not a formula")

    def _joined(self, current: Sequence | StrictSequence | All, below: list[Fragment]) -> Fragment:
        optional = (can_be_absent(current.left), can_be_absent(current.right))
        if not isinstance(current, All):
            if isinstance(current, Sequence):
                return sequence(below[0], below[1], optional)
            if ends_late(below[0]):
                return with_patience(sequence_in_time(below[0], below[1], optional))
            joined = sequence_strictly(below[0], below[1], optional)
            return with_patience(joined) if self.ticking else joined
        alone = [operand.copy() for operand, other in zip(below, reversed(optional)) if other]
        return reduce(union, alone, product_all(below[0], below[1]))

    def _any_type(
        self, check: Condition | None, event: AnyEvent | NotEvent, never: str | None = None
    ) -> list[Transition]:
        """One transition for every named type but ``never``, labelled with it unless hidden, and one for all others.

        If all events have one type, that is one transition.
        """
        named = self.mentioned.union(event.hidden)
        known = [TypeTest(name) for name in sorted(named)]
        label = {name: UNNAMED if name in event.hidden else name for name in named}
        cases: list[tuple[Condition, str]]
        if event.only is not None:
            cases = [(Constant(True), label.get(event.only, TYPE_LABEL))]
        else:
            cases = [(test, label[test.type]) for test in known if test.type != never]
            cases.append((conjunction([Not(test) for test in known]), TYPE_LABEL))
        result = []
        for test, name in cases:
            guard = [test] if check is None else [test, check]
            local = [g for g in guard if is_local(g)]
            t = Transition(0, 1, conjunction(local), tuple(g for g in guard if not is_local(g)), frozenset((name,)))
            result.append(on_events(t) if self.ticking else t)
        return result

    def _not_event(self, current: NotEvent, index: int) -> Fragment:
        test = event_test(current.event)
        if current.condition is not None:
            own = current.event.name
            scopes = {**self.scopes.outer[index], own: index}
            # One event is read, so AND, OR and NOT on the complex event equal those on the event.
            labels = {name: scopes[name] for name in condition_labels(current.condition)}
            resolved = separate(gather(without_some(current.condition), labels.keys()), labels)
            here: dict[Expression, Expression] = {u: u.expression for u in _leaves_of(resolved, index)}
            test = And(test, substitute(resolved, here))
        whole = isinstance(test, TypeTest) and test.stream is None
        return atom(self._any_type(Not(Satisfied(test)), current, current.event.name if whole else None))

    def _events_read(self, index: int) -> EventsRead:
        """The events that have been read wherever the formula at an occurrence is looked for."""
        nodes, parents, labels = self._nodes, self._parents, self.scopes.labels
        passed = frozenset[str]()
        before: set[Reference] = set()
        here = index
        while here in parents:
            above = parents[here]
            match nodes[above]:
                case Sequence() | StrictSequence() if here != self._first[above]:
                    passed |= labels[self._first[above]].bound
                case As() | Rename() | Project():
                    passed = frozenset()
                case Exclusion() if here != self._first[above]:
                    passed = frozenset()
            before |= {(label, above) for label in passed & labels[above].bound}
            here = above
        return EventsRead(index, frozenset(before))

    def _filter(self, operand: Fragment, condition: Condition, index: int) -> Fragment:
        outer = self.scopes.outer[index]
        scopes = {label: outer.get(label, index) for label in condition_labels(condition)}
        bound = self.scopes.labels[index].bound
        # EVENT may give a bound label to a second event, if its type has that name.
        one = outer.keys() | (bound - several(operand, bound))

        def resolve(part: Condition) -> Condition:
            found = neighbours(part, scopes, index, one)
            if found is not None:
                return found
            if isinstance(part, Some) and not condition_labels(part).keys() <= one:
                bounds = between_bounds(part)
                if bounds is None:
                    return Some(part.labels, separate(gather(part.condition, one), scopes), span=part.span)
                part = bounds
            return separate(gather(without_some(part), one), scopes)

        return apply_filter(operand, condition, resolve, scopes, index, self.registers)


def _leaves_of(condition: Condition, scope: int) -> list[Of]:
    return [leaf for leaf in leaves(condition) if isinstance(leaf, Of) and leaf.scope == scope]


def _named_labels(formula: Formula) -> frozenset[str]:
    """Labels that some operator tells apart from others: an event of a type called so must be told apart too."""
    found: set[str] = set()
    for current in walk(formula):
        match current:
            case Filter() | NotEvent() if current.condition is not None:
                found.update(condition_labels(current.condition))
            case Rename():
                found.update((current.old, current.new))
            case Project():
                found.update(current.labels)
            case As():
                found.add(current.label)
            case Selection():
                found.update(_labels_compared(current))
    return frozenset(found)
