"""From the first-order reading to the second-order one, and back.

Both readings agree where every variable of a filter is one event of what is filtered, or none. So a formula of our
language that means the first-order reading of another one is made safe where it is not, and the variables of
iterations, whose events our labels would all hold at once, are renamed apart and renamed back around the whole.

Formulas whose conditions speak of the labels of what they filter alone, as in the papers, are another matter (P2
Theorems 4.3 and 4.5, Appendix A.3; back: Theorem 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, Condition, Constant, Or, with_labels
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.language.select import CountItem, Select
from cerflow.logic.analysis import first_order, scopes
from cerflow.logic.conditions.connectives import clauses
from cerflow.logic.rewriting import rebuild
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.first_order.properties import safe_form
from cerflow.theory.rewriting.first_order.waiting import Bringing


def check_query_of_sets(select: Select) -> None:
    """Whether a query can be read as first-order CEL, whose matches are sets of positions (spec §14).

    Raises `QueryError` as `check_first_order` does, for BY, and for a projection other than ``*``, NONE and COUNT(*).
    """
    first_order.check_first_order(select.formula)
    first_order.refuse_by(select.by)
    for item in select.projection.items:
        if not isinstance(item, CountItem):
            raise QueryError(
                "matches of the first-order reading are sets of positions, so SELECT takes *, NONE or COUNT(*)",
                span=item.span,
                hint='Labels and their values are those of the second-order reading: leave out reading="first-order".',
            )


def query_from_first_order(select: Select) -> Select:
    """The query with `from_first_order` of its formula, all of whose events have one label without a name.

    A formula that is unsatisfiable becomes one that never matches. Raises `UnsupportedQueryError` as `from_first_order`
    does.
    """
    formula = from_first_order(select.formula)
    if formula is None:
        formula = f.Filter(f.AnyEvent(), Constant(False))
    return replace(select, formula=f.positions_alone(formula))


def from_first_order(formula: f.Formula) -> f.Formula | None:
    """A formula of our language with the meaning of ``formula`` in the first-order reading.

    The supports of its complex events are the matches of the first-order formula, the labels are the variables. None
    if the formula cannot match. Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` as
    `safe_form` does, and for NEXT, LAST and MAX after other events.
    """
    first_order.check_first_order(formula)
    rebuild.refuse_later_choices(formula)
    renamed, back = _renamed_apart(formula)
    filters = [current for current in walk(renamed) if isinstance(current, f.Filter)]
    fits = first_order.is_safe(renamed) and not any(map(_reads_partly_bound, filters))
    plain = renamed if fits else safe_form(renamed)
    if plain is None:
        return None
    left = {current.label for current in walk(plain) if isinstance(current, f.As)}
    for name, original in back.items():
        if name in left:
            plain = f.Rename(plain, name, original)
    return plain


def _reads_partly_bound(current: f.Filter) -> bool:
    """Whether a filter reads a variable that only some branches of its operand define."""
    defined = first_order.defined_variables(current.operand, outside_iterations=True)
    return bool(first_order.condition_variables(current) & defined - first_order.bound_variables(current.operand))


def _renamed_apart(formula: f.Formula) -> tuple[f.Formula, dict[str, str]]:
    """The formula with variables renamed so that no label has more events than the variable; and the inverse."""
    nodes = list(walk(formula))
    top = len(nodes)
    # The innermost iteration around each formula; its operand stands right before it.
    iterations = {k for k, n in enumerate(nodes) if isinstance(n, f.Iteration)}
    around = scopes.handed_down(formula, top, lambda k, _, here: k if k in iterations else here, first_only=())
    found = scopes.of_operands(scopes.occurrences(formula), lambda _, *part: first_order.combine_defined(*part))
    defined = {k: found[k - 1] for k in (*iterations, top)}

    fresh = rebuild.FreshNames(formula)
    # EVENT and NOT can give any label.
    wild = any(isinstance(current, f.OfAnyType) for current in nodes)
    names: dict[tuple[int, str], str] = {}
    taken = set(scopes.relation_names(formula))
    # Outer variables keep their names; an iteration stands after what it contains.
    for scope in sorted(defined, reverse=True):
        for name in sorted(defined[scope]):
            names[scope, name] = fresh.like(name) if wild or name in taken else name
            taken.add(name)

    def meaning(index: int, name: str) -> str:
        scope = around[index]
        while name not in defined[scope]:
            scope = around[scope]
        return names[scope, name]

    def change(index: int, current: Node) -> Node:
        return rebuild.with_own_labels(current, lambda name: meaning(index, name))

    back = {own: name for (_, name), own in names.items() if own != name}
    return rebuild.transformed(formula, change), back


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
    first_order.check_first_order(formula)
    rebuild.refuse_later_choices(formula)
    for current in walk(formula):
        rebuild.refuse_any(current)
    safe = formula if first_order.is_safe(formula) else safe_form(formula)
    if safe is None:
        return None
    bringing = Bringing(safe, relate=True)
    whole = bringing.run()
    return None if whole is None else _with_few_labels(whole, bringing.labels)


def _with_few_labels(formula: f.Formula, own: dict[str, str]) -> f.Formula:
    """The formula without labels that stand for a variable alone, the others with their old names."""
    events = _labels_of_events(formula)
    relations = scopes.relation_names(formula)
    # EVENT and NOT can give any label.
    wild = any(isinstance(n, f.OfAnyType) for n in walk(formula))
    needless = {
        label: variable
        for label, variable in own.items()
        if not wild and variable not in relations and all((label in e) == (variable in e) for e in events)
    }

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

    given = scopes.handed_down(formula, frozenset[str](), enter, first_only=())
    return {
        given[k] for k, place in scopes.occurrences(formula).items() if given[k] and not isinstance(place.formula, f.As)
    }


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
    labels = scopes.resolve(pushed).labels
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

    scopes.handed_down(pushed, False, enter, first_only=())
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
        assert isinstance(current, f.OfAnyType)
        others = _required(chain, None)
        # The labels that conditions on one event read, and labels that are renamed to these.
        read = (scopes.condition_labels(step.condition) for step in chain if isinstance(step, f.Filter))
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
                    missing = [a for a in clause if not labels.issuperset(scopes.condition_labels(a))]
                    if any(map(rebuild.mentions_set, missing)):
                        raise UnsupportedQueryError(
                            f"{show(step.condition)} counts the events of a type that need not be read here",
                            span=step.span,
                        )
                    if not missing:
                        found.append(clause)
    return found
