"""Checks of conditions and expressions that do not need a schema: names, and what is allowed where."""

from __future__ import annotations

from cerflow.base import limits
from cerflow.base.errors import QueryError, nearest
from cerflow.base.text_patterns import check_like, check_regexp
from cerflow.language import condition as c
from cerflow.language.lexicon import BUILT_IN, INSTEAD
from cerflow.language.node import Node, walk
from cerflow.language.predicates import registry
from cerflow.logic.analysis.scopes import condition_labels

_LABEL_FUNCTIONS = ("position", "time")


def check_expression(root: c.Condition | c.Expression, *, bare: bool = False, column: bool = False) -> None:
    """Check names and places within a condition or expression; with ``bare`` attributes need no label.

    In a computed ``column`` the number of the match may be asked for.

    Raises `QueryError` as `check_query` does.
    """
    stack: list[tuple[Node, bool, str | None, Node | None, int, bool]] = [(root, bare, None, None, 0, column)]
    while stack:
        current, inside, bracket, above, cases, whole = stack.pop()
        if cases and isinstance(current, c.Bracket | c.Some):
            what = "SOME" if isinstance(current, c.Some) else "a bracket"
            raise QueryError(f"{what} is not allowed inside CASE", span=current.span)
        if isinstance(current, c.Attribute | c.LabelReference) and current.label is None and not inside:
            what = f"attribute '{current.name}'" if isinstance(current, c.Attribute) else "EVENT"
            raise QueryError(
                f"{what} has no label", span=current.span, hint="Only in a bracket x[…] may it stand alone."
            )
        match current:
            case c.LabelReference():
                _check_reference(current, above)
            case c.Literal(int() as value) if not isinstance(value, bool) and not -(2**63) <= value < 2**63:
                raise QueryError(f"{value} does not fit into 64 bits", span=current.span)
            case c.Function():
                _check_function(current, whole)
                if current.name == "prev":
                    _check_previous(current, bracket)
            case c.Aggregate() | c.SetTest():
                _check_aggregate(current, inside)
            case c.PredicateCall():
                _check_predicate(current, bracket)
            case c.Regexp():
                check_regexp(current.pattern, current.span)
            case c.Like():
                check_like(current.pattern, current.span)
            case c.In():
                if not current.items:
                    raise QueryError("the list after IN is empty", span=current.span)
            case c.Some():
                _check_some(current, bracket)
        if isinstance(current, c.Bracket):
            inside, bracket = True, current.label
            _check_sets_beside_previous(current)
        # These are asked about events.
        whole = whole and not isinstance(current, c.Aggregate | c.SetTest | c.PredicateCall)
        if isinstance(current, c.If | c.TruthValue):
            if cases == limits.CASE_DEPTH:
                reason = f"CASE is nested in conditions of CASE more than {limits.CASE_DEPTH} levels deep"
                raise QueryError(reason, span=current.span)
            stack.append((current.condition, inside, bracket, current, cases + 1, whole))
        below = current.children[isinstance(current, c.If | c.TruthValue) :]
        stack.extend((child, inside, bracket, current, cases, whole) for child in below)


def _check_some(some: c.Some, bracket: str | None) -> None:
    if bracket is not None:
        raise QueryError("SOME is not allowed inside a bracket", span=some.span)
    read = condition_labels(some.condition)
    for k, label in enumerate(some.labels):
        if label in some.labels[:k]:
            raise QueryError(f"SOME lists '{label}' twice", span=some.span)
        if label not in read:
            raise QueryError(
                f"SOME lists '{label}', but its condition does not read it",
                span=some.span,
                suggestion=nearest(label, read),
                hint=f"To ask whether '{label}' has an event, write SOME {label}: position({label}) IS NOT NULL.",
            )
    for current in walk(some.condition):
        if isinstance(current, c.Some):
            raise QueryError(
                "SOME is not allowed inside SOME",
                span=current.span,
                hint="One SOME may list several labels: SOME x, y: …",
            )
        if registry.is_about_set(current):
            raise QueryError(
                "SOME chooses single events, but this reads all events of a label",
                span=current.span,
                hint="Compare the sets, as in max(x.v) > avg(x.v), or join the condition to SOME with AND.",
            )


def _check_reference(reference: c.LabelReference, above: Node | None) -> None:
    takes_labels = isinstance(above, c.Function | c.Aggregate) and above.name in (*_LABEL_FUNCTIONS, "count")
    if takes_labels or isinstance(above, c.PredicateCall):
        return
    label = reference.label or "EVENT"
    raise QueryError(
        f"label '{label}' is used where a value is expected", span=reference.span, hint=f"Name an attribute: {label}.…"
    )


def _unknown(
    call: c.Function | c.Aggregate | c.SetTest | c.PredicateCall, what: str = "function", hint: str | None = None
) -> QueryError:
    near = nearest(call.name, (*BUILT_IN, *(predicate.name for predicate in registry.registered_predicates())))
    return QueryError(f"unknown {what} '{call.name}'", span=call.span, suggestion=near, hint=hint)


def _check_function(function: c.Function, column: bool) -> None:
    if function.name == c.MATCH_NUMBER and not function.arguments:
        if column:
            return
        raise QueryError(
            "the number of a match is known only when it is reported",
            span=function.span,
            hint="MATCH_NUMBER() is allowed only in SELECT, outside aggregates and predicates.",
        )
    if function.name == "||" and len(function.arguments) == 2:
        return
    if function.name not in (*c.FUNCTIONS, *c.LONGER_FUNCTIONS, *_LABEL_FUNCTIONS, "prev", c.MATCH_NUMBER):
        raise _unknown(function)
    c.check_arity(function.name, len(function.arguments), function.span, QueryError)
    if function.name in _LABEL_FUNCTIONS and not isinstance(function.arguments[0], c.LabelReference):
        raise QueryError(f"{function.name} takes a label", span=function.arguments[0].span or function.span)


def _check_previous(function: c.Function, bracket: str | None) -> None:
    if bracket is None:
        raise QueryError(
            "prev is allowed only in a bracket on a label",
            span=function.span,
            hint="Write x[price > prev(price)]: it compares every event of x with the one of x before it.",
        )
    for current in walk(function.arguments[0]):
        if isinstance(current, c.Function) and current.name == "prev":
            raise QueryError("prev is not allowed inside prev", span=current.span)
        label = current.label if isinstance(current, c.Attribute | c.LabelReference) else None
        if label not in (None, bracket):
            raise QueryError(
                f"prev reads the event of '{bracket}' before, but this is '{label}'",
                span=current.span,
                hint="Name the attribute alone.",
            )


def _check_sets_beside_previous(bracket: c.Bracket) -> None:
    if not c.calls(bracket, "prev"):
        return
    for current in walk(bracket.condition):
        if registry.is_about_set(current) and not isinstance(current, c.Function):
            raise QueryError(
                "a bracket with prev cannot ask about all events of a label",
                span=current.span,
                hint="Put that condition into a bracket of its own, joined by AND.",
            )


def _check_aggregate(current: c.Aggregate | c.SetTest, inside: bool) -> None:
    if current.name not in ((*c.AGGREGATES, c.COUNT_DISTINCT) if isinstance(current, c.Aggregate) else c.SET_TESTS):
        raise _unknown(current)
    labels = _labels_read(current.argument, "an aggregate is not allowed inside an aggregate")
    if len(labels) != 1:
        count = "none" if not labels else "several"
        hint = "In a bracket, name the label of every attribute." if inside and None in labels else None
        reason = f"{current.name} aggregates the events of one label, but its argument reads {count}"
        raise QueryError(reason, span=current.span, hint=hint)


def _labels_read(tree: Node, refusal: str) -> set[str | None]:
    """The labels that an argument reads; an error with this reason for an aggregate in it."""
    for current in walk(tree):
        if isinstance(current, c.Aggregate):
            raise QueryError(refusal, span=current.span)
    return {n.label for n in walk(tree) if isinstance(n, c.Attribute | c.LabelReference)}


def _check_predicate(call: c.PredicateCall, bracket: str | None) -> None:
    predicate = registry.find_predicate(call.name)
    if predicate is None:
        own = "A predicate of your own must be registered before the query is checked."
        hint = INSTEAD.get(call.name.lower(), own)
        raise _unknown(call, "function or predicate", hint)
    count = len(call.arguments)
    if not predicate.fewest <= count <= predicate.most:
        given = f"{count} {'is' if count == 1 else 'are'} given"
        raise QueryError(f"predicate '{call.name}' takes {predicate.arity}, but {given}", span=call.span)
    if predicate.kind is not registry.PredicateKind.SCALAR:
        _check_labels_of_call(call, predicate, bracket)


def _check_labels_of_call(call: c.PredicateCall, predicate: registry.Predicate, bracket: str | None) -> None:
    """A call that is asked about many events at once reads those of one label, or of one label in each argument."""
    refusal = f"an aggregate cannot be an argument of '{call.name}', which {_takes(predicate)}"
    read = [
        {bracket if label is None else label for label in _labels_read(argument, refusal)}
        for argument in call.arguments
    ]
    found = set().union(*read)
    several = [span for labels, span in zip(read, (a.span for a in call.arguments)) if len(labels) > 1]
    if predicate.kind is registry.PredicateKind.SET and predicate.form is not registry.Form.VALUES:
        if several:
            raise QueryError(
                f"predicate '{call.name}' takes sets of events, one label in each argument, but this reads several",
                span=several[0],
                hint="Pass the values of each label in an argument of its own.",
            )
    elif len(found) > 1:
        raise QueryError(f"predicate '{call.name}' {_takes(predicate)}, but its arguments read several", span=call.span)
    if not found:
        raise QueryError(f"predicate '{call.name}' {_takes(predicate)}, but its arguments read none", span=call.span)


def _takes(predicate: registry.Predicate) -> str:
    if predicate.kind is registry.PredicateKind.SET:
        return f"goes over the events of {'one label' if predicate.form is registry.Form.VALUES else 'labels'}"
    return "is vectorized over the events of one label"
