"""The checks of a query that need no schema: scopes, names, and what stands where."""

from __future__ import annotations

from collections.abc import Iterator, Set
from collections.abc import Sequence as Many

from cerflow.analysis.multiplicity import multiplicity
from cerflow.analysis.scopes import Labels, condition_labels, resolve
from cerflow.errors import QueryError, nearest
from cerflow.language.condition import (
    AGGREGATES,
    FUNCTIONS,
    SET_TESTS,
    Aggregate,
    Attribute,
    Bracket,
    Condition,
    Expression,
    Function,
    In,
    LabelReference,
    Like,
    Literal,
    PredicateCall,
    Regexp,
    SetTest,
    Some,
)
from cerflow.language.formula import (
    All,
    Filter,
    Formula,
    NotEvent,
    Selection,
    Sequence,
    StrictSequence,
    can_be_absent,
)
from cerflow.language.node import Node, fold, walk
from cerflow.language.select import CountItem, ExpressionItem, LabelItem, Select
from cerflow.language.sremo import MARK, Complement, Intersection, Regular, Sremo, Terminal
from cerflow.predicates.predicate import Predicate, PredicateKind
from cerflow.predicates.registry import find_predicate, is_about_set, predicate_names
from cerflow.values.text_patterns import check_like, check_regexp

__all__ = ["check_expression", "check_query", "check_sremo", "computed_names", "refuse_aggregates"]

_LABEL_FUNCTIONS = ("position", "time")


def check_query(select: Select) -> None:
    """Check everything of a query that needs no schema.

    Raises `QueryError` for labels that are unknown or that nothing binds, unknown functions and predicates, arguments
    that do not belong to a function, and result columns of one name.
    """
    _check_optional(select.formula)
    scopes = resolve(select.formula)
    labels = scopes.labels[max(scopes.labels)]
    known = frozenset[str]().union(*(entry.assigned for entry in scopes.labels.values()))
    for index, current in enumerate(walk(select.formula)):
        if isinstance(current, Filter | NotEvent) and current.condition is not None:
            check_expression(current.condition)
        elif isinstance(current, Selection):
            _check_compared(current, scopes.labels[index], known)
        elif isinstance(current, Regular):
            check_sremo(current.expression)
    _check_compared(select, labels, known)
    several = multiplicity(select.formula, scopes)
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            _check_label(item.label, item, labels)
        elif isinstance(item, CountItem):
            if len(select.projection.items) > 1:
                raise QueryError("COUNT(*) stands alone: it counts matches instead of reporting them", span=item.span)
        else:
            check_expression(item.expression)
            for label, place in condition_labels(item.expression).items():
                _check_label(label, place, labels)
            for label, place in _single_labels(item.expression):
                if label in several.several or (several.types and label not in labels.assigned):
                    raise QueryError(
                        f"'{label}' may have several events in one match, but a column holds one value",
                        span=place.span,
                        hint=f"Use an aggregate, such as first({label}.…) or max({label}.…).",
                    )
    _check_column_names(select)


def _check_optional(root: Formula) -> None:
    """A part that can be absent stands beside one that cannot, in a sequence or ALL."""
    alone: list[Node] = [root]
    for current in walk(root):
        if not isinstance(current, Sequence | StrictSequence | All):
            alone += current.children
    for current in alone:
        if isinstance(current, Formula) and can_be_absent(current):
            raise QueryError(
                "this part may be absent, and nothing stands beside it that may not",
                span=current.span,
                hint="A part with ? or {0,…} is an operand of ;, : or ALL beside another one, as in A ; B? ; C.",
            )


def _check_label(label: str, place: Node, labels: Labels) -> None:
    # EVENT and NOT give their event the name of its type, which may be anything.
    if label not in labels.assigned and not labels.wildcard:
        known = ", ".join(sorted(labels.assigned))
        raise QueryError(
            f"unknown label '{label}'",
            span=place.span,
            suggestion=nearest(label, labels.assigned),
            hint=f"The labels of the formula are {known}." if known else "The formula gives no labels.",
        )


def _check_compared(chosen: Selection | Select, own: Labels, known: Set[str]) -> None:
    """Check the labels behind BY: each stands once, and the formula that chooses gives it."""
    for k, reference in enumerate(chosen.by):
        label = str(reference.label)
        if reference in chosen.by[:k]:
            raise QueryError(f"BY lists '{label}' twice", span=reference.span)
        if label not in own.assigned and not own.by_type(label):
            raise QueryError(
                f"'{label}' is no label of the formula in which {chosen.strategy} chooses"
                if label in known
                else f"unknown label '{label}'",
                span=reference.span,
                suggestion=nearest(label, own.assigned),
                hint=f"The labels of that formula are {', '.join(sorted(own.assigned))}." if own.assigned else None,
            )


def _single_labels(expression: Expression) -> Iterator[tuple[str, Node]]:
    """The labels outside aggregates, with the node that names each."""
    stack: list[Node] = [expression]
    while stack:
        current = stack.pop()
        if isinstance(current, Aggregate):
            continue
        if isinstance(current, Attribute | LabelReference) and current.label is not None:
            yield current.label, current
        stack.extend(current.children)


def computed_names(select: Select) -> list[tuple[str, Node]]:
    """The names of the computed columns, with the items that make them."""
    return [(item.name, item) for item in select.projection.items if isinstance(item, ExpressionItem | CountItem)]


def _check_column_names(select: Select) -> None:
    if any(isinstance(item, CountItem) for item in select.projection.items):
        taken = {"detected_at", "end_time"}
    else:
        taken = {"detected_at", "start", "end", "start_time", "end_time", "events"}
    for key in select.partition:
        if key[0] in taken:
            raise QueryError(
                f"partition key '{key[0]}' would be a second result column of that name",
                span=select.span,
                hint="Rename the attribute in the input.",
            )
        taken.add(key[0])
    for name, item in computed_names(select):
        if name in taken:
            raise QueryError(
                f"column '{name}' would be a second result column of that name",
                span=item.span,
                hint=f"The result has these columns already: {', '.join(sorted(taken))}.",
            )
        taken.add(name)


def check_expression(root: Condition | Expression, *, bare: bool = False) -> None:
    """Check names and places within a condition or expression; with ``bare`` attributes need no label.

    Raises `QueryError` as `check_query` does.
    """
    stack: list[tuple[Node, bool, str | None, Node | None]] = [(root, bare, None, None)]
    while stack:
        current, inside, bracket, above = stack.pop()
        if isinstance(current, Attribute | LabelReference) and current.label is None and not inside:
            what = f"attribute '{current.name}'" if isinstance(current, Attribute) else "EVENT"
            raise QueryError(
                f"{what} stands without a label", span=current.span, hint="Only in a bracket x[…] may it do so."
            )
        match current:
            case LabelReference():
                _check_reference(current, above)
            case Literal():
                _check_literal(current)
            case Function():
                _check_function(current)
            case Aggregate() | SetTest():
                _check_aggregate(current, inside)
            case PredicateCall():
                _check_predicate(current, bracket)
            case Regexp():
                check_regexp(current.pattern, current.span)
            case Like():
                check_like(current.pattern, current.span)
            case In():
                if not current.items:
                    raise QueryError("the list behind IN is empty", span=current.span)
            case Some():
                _check_some(current, bracket)
        if isinstance(current, Bracket):
            inside, bracket = True, current.label
        stack.extend((child, inside, bracket, current) for child in current.children)


def _check_some(some: Some, bracket: str | None) -> None:
    if bracket is not None:
        raise QueryError("SOME cannot stand inside a bracket", span=some.span)
    read = condition_labels(some.condition)
    for k, label in enumerate(some.labels):
        if label in some.labels[:k]:
            raise QueryError(f"SOME lists '{label}' twice", span=some.span)
        if label not in read:
            raise QueryError(
                f"SOME lists '{label}', but its condition does not read it",
                span=some.span,
                suggestion=nearest(label, read),
                hint=f"That '{label}' has any event is SOME {label}: position({label}) IS NOT NULL.",
            )
    for current in walk(some.condition):
        if isinstance(current, Some):
            raise QueryError(
                "SOME cannot stand inside SOME",
                span=current.span,
                hint="One SOME may list several labels: SOME x, y: …",
            )
        if is_about_set(current):
            raise QueryError(
                "SOME chooses single events, but this speaks of all events of a label",
                span=current.span,
                hint="Compare the sets, as in max(x.v) > avg(x.v), or put the condition beside SOME with AND.",
            )


def _check_reference(reference: LabelReference, above: Node | None) -> None:
    if isinstance(above, PredicateCall):
        return
    if isinstance(above, Function) and above.name in _LABEL_FUNCTIONS:
        return
    if isinstance(above, Aggregate) and above.name == "count":
        return
    label = reference.label or "EVENT"
    raise QueryError(
        f"label '{label}' stands where a value is expected", span=reference.span, hint=f"Name an attribute: {label}.…"
    )


def _check_literal(literal: Literal) -> None:
    value = literal.value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise QueryError(f"{value} does not fit into 64 bits", span=literal.span)


def _known_names() -> tuple[str, ...]:
    return (*FUNCTIONS, *_LABEL_FUNCTIONS, *AGGREGATES, *SET_TESTS, *predicate_names())


def _check_function(function: Function) -> None:
    if function.name not in (*FUNCTIONS, *_LABEL_FUNCTIONS):
        raise QueryError(
            f"unknown function '{function.name}'",
            span=function.span,
            suggestion=nearest(function.name, (*FUNCTIONS, *_LABEL_FUNCTIONS, *AGGREGATES)),
        )
    if len(function.arguments) != 1:
        raise QueryError(
            f"{function.name} takes one argument, but {len(function.arguments)} are given", span=function.span
        )
    if function.name in _LABEL_FUNCTIONS and not isinstance(function.arguments[0], LabelReference):
        raise QueryError(f"{function.name} takes a label", span=function.arguments[0].span or function.span)


def _check_aggregate(current: Aggregate | SetTest, inside: bool) -> None:
    if current.name not in (AGGREGATES if isinstance(current, Aggregate) else SET_TESTS):
        raise QueryError(
            f"unknown function '{current.name}'", span=current.span, suggestion=nearest(current.name, _known_names())
        )
    labels: set[str | None] = set()
    for below in walk(current.argument):
        if isinstance(below, Aggregate):
            raise QueryError("an aggregate cannot stand inside an aggregate", span=below.span)
        if isinstance(below, Attribute | LabelReference):
            labels.add(below.label)
    if len(labels) != 1:
        count = "none" if not labels else "several"
        hint = "In a bracket, name the label of every attribute." if inside and None in labels else None
        reason = f"{current.name} goes over the events of one label, but its argument reads {count}"
        raise QueryError(reason, span=current.span, hint=hint)


def _check_predicate(call: PredicateCall, bracket: str | None) -> None:
    predicate = find_predicate(call.name)
    if predicate is None:
        raise QueryError(
            f"unknown function or predicate '{call.name}'",
            span=call.span,
            suggestion=nearest(call.name, _known_names()),
            hint="A predicate of your own must be registered before the query is checked.",
        )
    count = len(call.arguments)
    if not predicate.fewest <= count <= predicate.most:
        given = f"{count} {'is' if count == 1 else 'are'} given"
        raise QueryError(f"predicate '{call.name}' takes {predicate.arity}, but {given}", span=call.span)
    if predicate.kind is not PredicateKind.SCALAR:
        _check_one_label(call, predicate, bracket)


def _check_one_label(call: PredicateCall, predicate: Predicate, bracket: str | None) -> None:
    """A call that is asked about many events at once reads those of one label."""
    labels: set[str | None] = set()
    for below in walk(call):
        if isinstance(below, Aggregate):
            raise QueryError(
                f"an aggregate cannot be an argument of '{call.name}', which {_takes(predicate)}", span=below.span
            )
        if isinstance(below, Attribute | LabelReference):
            labels.add(bracket if below.label is None else below.label)
    if len(labels) > 1:
        raise QueryError(f"predicate '{call.name}' {_takes(predicate)}, but its arguments read several", span=call.span)
    if not labels:
        raise QueryError(f"predicate '{call.name}' {_takes(predicate)}, but its arguments read none", span=call.span)


def _takes(predicate: Predicate) -> str:
    if predicate.kind is PredicateKind.SET:
        return "goes over the events of one label"
    return "is vectorized over the events of one label"


def refuse_aggregates(expression: Sremo) -> None:
    """Raise `QueryError` for an aggregate, SOME, a test on a set or a predicate of sets in an expression of SREMO.

    A terminal knows the event read and one event for each register, and of several that a repetition writes there the
    last one. Keeping them all takes more than the registers of the papers.
    """
    for current in walk(expression):
        if isinstance(current, Some):
            raise QueryError(
                "a terminal reads one event and registers hold one, so there is nothing for SOME to choose",
                span=current.span,
            )
        if isinstance(current, Aggregate | SetTest | PredicateCall) and is_about_set(current):
            raise QueryError(
                f"{current.name} goes over many events, but registers hold one event, so there is nothing to aggregate",
                span=current.span,
                hint="In CEQL it goes over all events of a label, as in SELECT * WHERE ((A AS x)+ ; B) FILTER "
                "sum(x.v) > 10. A running comparison needs none: [v > r.v] INTO r, repeated, is increasing(x.v).",
            )


def check_sremo(expression: Sremo) -> None:
    """Check everything of a SREMO expression that needs no schema.

    Raises `QueryError` as `check_query` does, for aggregates, for a register that is read but never written, and for
    one that both sides of ``&`` write.
    """
    terminals = [current for current in walk(expression) if isinstance(current, Terminal)]
    refuse_aggregates(expression)
    written = {register for terminal in terminals for register in terminal.registers}
    for terminal in terminals:
        check_expression(terminal.condition, bare=True)
        for register, place in condition_labels(terminal.condition).items():
            if register not in written:
                raise QueryError(
                    f"register '{register}' is read but never written",
                    span=place.span,
                    suggestion=nearest(register, written),
                    hint=f"A terminal writes it with INTO {register}.",
                )
    _check_writers(expression)
    if not any(terminal.label is not None for terminal in terminals):
        raise QueryError(
            "the expression marks no event, so it can have no match",
            span=expression.span,
            hint=f"Put MARK (label '{MARK}') or AS label behind a terminal.",
        )


def _check_writers(expression: Sremo) -> None:
    def written(current: Node, below: Many[frozenset[str]]) -> frozenset[str]:
        if isinstance(current, Terminal):
            return frozenset(current.registers)
        if isinstance(current, Complement):
            return frozenset()
        if isinstance(current, Intersection) and below[0] & below[1]:
            raise QueryError(f"both sides of & write register '{min(below[0] & below[1])}'", span=current.span)
        return frozenset().union(*below)

    fold(expression, written)
