"""First-order formulas as second-order ones (P2 Theorems 4.3 and 4.5, Appendix A.3), and back (Theorem 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, Condition, Or, with_labels
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.logic.analysis.first_order import check_first_order, is_safe
from cerflow.logic.analysis.scopes import condition_labels, handed_down, occurrences, relation_names, resolve
from cerflow.logic.conditions.connectives import clauses
from cerflow.logic.rewriting import rebuild
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.first_order.properties import safe_form
from cerflow.theory.rewriting.first_order.waiting import Bringing


@of_formula
def first_order_to_second_order(formula: f.Formula) -> f.Formula | None:
    """A second-order formula with the same matches: its complex events have their supports.

    Every condition speaks of labels that the formula it filters assigns, and holds if it holds of all their events.
    Conditions on one variable stand on its event (Theorem 4.3), those on two on the closest formula that has both
    (Theorem 4.5). Labels are the variables; where the events of a variable must be distinguished, by the assignments
    that a condition means, they get labels of their own, which are renamed back around the whole. None if the formula
    cannot match.

    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` for a condition that relates two
    variables of each repetition with a third one outside (not expressible by Theorem 4.6), for one that would have to
    pass NEXT, LAST or MAX, for these after other events, for ANY, for a NOT that speaks of other events, and for a
    result that would be too large.
    """
    check_first_order(formula)
    rebuild.refuse_later_choices(formula)
    for current in walk(formula):
        rebuild.refuse_any(current)
    safe = formula if is_safe(formula) else safe_form(formula)
    if safe is None:
        return None
    bringing = Bringing(safe, relate=True)
    whole = bringing.run()
    return None if whole is None else _with_few_labels(whole, bringing.labels)


def _with_few_labels(formula: f.Formula, own: dict[str, str]) -> f.Formula:
    """The formula without labels that stand for a variable alone, the others with their old names."""
    events = _labels_of_events(formula)
    relations = relation_names(formula)
    # EVENT and NOT can give any label.
    wild = any(isinstance(n, f.AnyEvent | f.NotEvent) for n in walk(formula))
    needless: dict[str, str] = {}
    for label, variable in own.items():
        if not wild and variable not in relations and all((label in e) == (variable in e) for e in events):
            needless[label] = variable

    def change(_: int, current: Node) -> Node:
        match current:
            case f.As() if current.label in needless:
                return current.operand
            case f.Filter():
                return f.Filter(current.operand, rebuild.relabelled(current.condition, needless), span=current.span)
        return current

    whole = rebuild.transformed(formula, change)
    used = frozenset().union(*events)
    for label, variable in own.items():
        if label in used and label not in needless:
            whole = f.Rename(whole, label, variable)
    return whole


def _labels_of_events(formula: f.Formula) -> set[frozenset[str]]:
    """The labels that AS gives to each single event."""

    def enter(_: int, current: f.Formula, here: frozenset[str]) -> frozenset[str]:
        return here | {current.label} if isinstance(current, f.As) else frozenset()

    given = handed_down(formula, frozenset[str](), enter, first_only=())
    return {given[k] for k, place in occurrences(formula).items() if given[k] and not isinstance(place.formula, f.As)}


@of_formula
def second_order_to_first_order(formula: f.Formula) -> f.Formula:
    """A formula whose first-order reading has the supports of the complex events of a second-order formula.

    Conditions on one label each are pushed down to the events (P2 A.1); then every event gets a variable of its own.
    Where EVENT meets a condition on a label that is the name of a type, the events of that type are distinguished.

    Raises `UnsupportedQueryError` as `push_down_filters` does, and for operators that the first-order language does
    not have (``:``, ``:+``, AND, ALL, UNLESS, WITHOUT, START, PROJECT), and for NEXT, LAST and MAX after other events.
    """
    rebuild.refuse_later_choices(formula)
    pushed = push_down_filters(formula)
    labels = resolve(pushed).labels
    events: set[int] = set()

    def enter(index: int, current: f.Formula, inside: bool) -> bool:
        if inside or labels[index].single:
            events.update(() if inside else (index,))
            return True
        rebuild.refuse_any(current)
        if not isinstance(current, f.Disjunction | f.Sequence | f.Iteration | f.Selection | f.Within):
            raise UnsupportedQueryError(
                f"the first-order language has no {type(current).__name__}",
                span=current.span,
                hint="It has event types, FILTER, OR, ;, +, the strategies and WITHIN.",
            )
        return False

    handed_down(pushed, False, enter, first_only=())
    variables = _Variables(formula, pushed)
    return rebuild.transformed(pushed, lambda k, current: variables.event(current) if k in events else current)


class _Variables:
    """Gives events variables: a label of theirs if no other event has it, else a new name."""

    def __init__(self, written: f.Formula, pushed: f.Formula) -> None:
        self._fresh = rebuild.FreshNames(pushed)
        self._used: set[str] = set()
        #: Names that may be those of event types; new ones are not.
        self._types = rebuild.names_of(written)

    def event(self, event: Node) -> f.Formula:
        """A formula for one event, in first-order terms."""
        chain: list[f.Formula] = []
        current = event
        while isinstance(current, f.As | f.Rename | f.Filter):
            chain.append(current)
            current = current.operand
        chain.reverse()
        if isinstance(current, f.EventType):
            return self._assigned(current, chain, _required(chain, current.name))
        assert isinstance(current, f.AnyEvent | f.NotEvent)
        others = _required(chain, None)
        # The labels that conditions on one event read, and labels that are renamed to these.
        read = (condition_labels(step.condition) for step in chain if isinstance(step, f.Filter))
        named = {step.old for step in chain if isinstance(step, f.Rename)}.union(*read)
        types = (named & self._types).difference(current.hidden)
        apart = sorted(t for t in types if _required(chain, t) != others)
        if isinstance(current, f.NotEvent) and current.condition is None:
            apart = [t for t in apart if t != current.event.name or current.event.stream is not None]
        if not apart:
            return self._assigned(current, chain, others)
        if len(apart) > 1 or isinstance(current, f.NotEvent):
            raise UnsupportedQueryError(
                f"{show(current)} meets conditions on {' and '.join(apart)}: the first-order language cannot tell "
                "these events from the others",
                span=event.span,
                hint="Name the event types instead of EVENT or NOT.",
            )
        only = f.EventType(apart[0])
        first = self._assigned(only, chain, _required(chain, apart[0]))
        return f.Disjunction(first, self._assigned(f.NotEvent(only), chain, others))

    def _assigned(
        self, event: f.Formula, chain: Sequence[f.Formula], conditions: Sequence[Sequence[Condition]]
    ) -> f.Formula:
        given = [step.label for step in chain if isinstance(step, f.As)]
        if not given and not conditions:
            return event
        variable = next((name for name in given if name not in self._used), None)
        if variable is None:
            variable = self._fresh.like(given[0] if given else event.name if isinstance(event, f.EventType) else "x")
        self._used.add(variable)
        named = f.As(event, variable)
        if not conditions:
            return named
        whole = reduce(And, (reduce(Or, clause) for clause in conditions))
        # One event has all labels of an atom, so SOME means the same as its condition.
        return f.Filter(named, with_labels(rebuild.without_some(whole), lambda label: label and variable))


def _required(chain: Sequence[f.Formula], event_type: str | None) -> list[tuple[Condition, ...]]:
    """The clauses that the steps of a chain ask of an event of this type (None: of a type that no step names).

    An atom on a label that the event does not have asks for nothing.
    """
    labels = set() if event_type is None else {event_type}
    found: list[tuple[Condition, ...]] = []
    for step in chain:
        match step:
            case f.As():
                labels.add(step.label)
            case f.Rename() if step.old in labels:
                labels = (labels - {step.old}) | {step.new}
            case f.Filter():
                for clause in clauses(step.condition):
                    missing = [a for a in clause if not labels.issuperset(condition_labels(a))]
                    if any(map(rebuild.mentions_set, missing)):
                        raise UnsupportedQueryError(
                            f"{show(step.condition)} counts the events of a type that need not be read here",
                            span=step.span,
                        )
                    if not missing:
                        found.append(clause)
    return found
