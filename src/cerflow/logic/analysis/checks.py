"""Checks of a query that do not need a schema: scopes, names, and what is allowed where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, permutations

from cerflow.base import limits
from cerflow.base.errors import QueryError, QueryWarning, UnsupportedQueryError, nearest
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.event_kinds import check_kind
from cerflow.language.node import Node, fold_only, nested_operands, walk, walk_into
from cerflow.language.predicates.registry import is_about_set
from cerflow.language.printer import show
from cerflow.language.select import BOOKKEEPING, CountItem, LabelItem, Select
from cerflow.logic.analysis.condition_checks import check_expression
from cerflow.logic.analysis.multiplicity import label_counts
from cerflow.logic.analysis.scopes import Labels, condition_labels, excluded_label, labels_of, resolve


def check_query(select: Select) -> None:
    """Check everything of a query that needs no schema.

    Raises `QueryError` for labels that are unknown or that nothing binds, unknown functions and predicates, arguments
    that do not belong to a function, and result columns of one name.
    """
    _check_size(select)
    _check_optional(select.formula)
    scopes = resolve(select.formula)
    labels = scopes.labels[max(scopes.labels)]
    known = frozenset[str]().union(*(entry.assigned for entry in scopes.labels.values()))
    for index, current in enumerate(walk(select.formula)):
        if isinstance(current, f.Filter | f.NotEvent) and current.condition is not None:
            check_expression(current.condition)
            if isinstance(current, f.NotEvent) and c.calls(current.condition, "prev"):
                raise QueryError("NOT reads one event, so prev has no event before it", span=current.condition.span)
        elif isinstance(current, f.EventKind):
            check_kind(current.condition)
            check_expression(current.condition, bare=True)
            refuse_aggregates(current)
        elif isinstance(current, f.Selection):
            _check_compared(current, scopes.labels[index], known)
        elif isinstance(current, r.Regular):
            check_sremo(current.expression)
        elif isinstance(current, AutomatonFormula):
            _check_automaton(current)
    _check_compared(select, labels, known)
    several = label_counts(select.formula)
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            check_given(item.label, item, labels, select.formula, {*chain(*select.partition)})
        elif isinstance(item, CountItem):
            if len(select.projection.items) > 1:
                raise QueryError("COUNT(*) must be the only item: it counts matches, not reports them", span=item.span)
        else:
            check_expression(item.expression, column=True)
            for label, place in condition_labels(item.expression).items():
                check_given(label, place, labels, select.formula)
            for place in walk_into(item.expression, lambda n: not is_about_set(n)):
                single = place.label if isinstance(place, c.Attribute | c.LabelReference) else None
                if single in several.several or (several.types and single not in (None, *labels.assigned)):
                    raise QueryError(
                        f"'{single}' may have several events in one match, but a column holds one value",
                        span=place.span,
                        hint=f"Use an aggregate, such as first({single}.…) or max({single}.…).",
                    )
    _check_column_names(select)


def _check_size(select: Select) -> None:
    """Refuse a query that would take longer than a few seconds to prepare."""
    parts = events = 0
    for current in walk(select):
        parts += not isinstance(current, c.Literal)
        events += isinstance(current, f.EventType | f.AnyEvent)
    if events > limits.FORMULA_EVENTS:
        raise UnsupportedQueryError(
            f"the formula names {events:,} events; at most {limits.FORMULA_EVENTS:,} are allowed",
            span=select.formula.span,
            hint="Write types of the same event as one condition: EVENT AS x FILTER x.type IN ('A', 'B').",
        )
    if parts > limits.QUERY_PARTS:
        raise UnsupportedQueryError(
            f"the query has {parts:,} parts (operators, types, attributes and so on); at most "
            f"{limits.QUERY_PARTS:,} are allowed",
            span=select.formula.span,
            hint="x.v IN (1, 2, 3) may have any number of values.",
        )


def _check_optional(root: f.Formula) -> None:
    """A part that can be absent stands next to one that cannot, in a sequence or ALL."""
    alone: list[Node] = [root]
    for current in walk(root):
        if not isinstance(current, f.Join):
            alone += current.children
    for current in alone:
        if isinstance(current, f.Formula) and f.can_be_absent(current):
            raise QueryError(
                "this part may be absent, so it must stand next to one that may not",
                span=current.span,
                hint="A part with ? or {0,…} needs another operand of ;, : or ALL, as in A ; B? ; C.",
            )


def check_given(label: str, place: Node, labels: Labels, formula: f.Formula, keys: Set[str] = frozenset()) -> None:
    """Raise `QueryError` for a label that the formula with these ``labels`` does not give; ``keys`` are reported."""
    # EVENT and NOT give their event the name of its type, which may be anything.
    if label not in labels.assigned and not labels.wildcard:
        known, near = sorted(labels.assigned), nearest(label, labels.assigned)
        hint = f"The labels of the formula are {', '.join(known)}." if known else "The formula gives no labels."
        if known and not near and isinstance(place, LabelItem) and place.attributes is None:
            hint += f" An attribute follows a label, as in {known[0]}.{label}."
        if label in keys:
            near, hint = None, f"The key '{label}' of PARTITION BY is reported anyway: leave it out here."
        hint = excluded_label(label, formula) or hint
        raise QueryError(f"unknown label '{label}'", span=place.span, suggestion=near, hint=hint)


def misreadings(formula: f.Formula) -> Iterator[QueryWarning]:
    """Warnings of each WITHOUT that `looks_nowhere`, and of each NOT without a label between parts of a sequence, and
    of patterns of LIKE with wildcards of file names.
    """
    for current in walk(formula):
        if isinstance(current, c.Like) and re.fullmatch(r"[^%_]*[*?][^%_]*", current.pattern, re.DOTALL):
            reason = "this pattern of LIKE has no % or _, so it means only the text itself"
            hint = "% is any characters, _ is one; REGEXP takes a regular expression."
            yield QueryWarning(reason, span=current.span, hint=hint)
        if isinstance(current, f.Without) and looks_nowhere(current):
            reason = "this excludes nothing: WITHOUT looks between events of the part before it, which is one event"
            hint = "None after it is A NOT FOLLOWED BY B FOR 5 MINUTES, none between two events (A ; C) WITHOUT B."
            yield QueryWarning(reason, span=current.right.span, hint=hint)
    seen: set[Node] = set()
    for current in walk_into(formula, lambda n: not isinstance(n, f.Repeating)):
        if isinstance(current, f.Sequence) and current not in seen:
            seen.update(walk_into(current, lambda n: isinstance(n, f.Sequence)))
            yield from _between(nested_operands(current, f.Sequence))


def looks_nowhere(part: f.Without) -> bool:
    """Whether WITHOUT stands after one event, which is of none of the types that are excluded."""
    read = [n for n in walk(part) if isinstance(n, f.SingleEvent | f.Embedded)]
    names = [n.name for n in read if type(n) is f.EventType]
    return labels_of(part.left).single and len(names) == len(read) and names[0] not in names[1:]


def _between(parts: Sequence[f.Formula]) -> Iterator[QueryWarning]:
    for k, part in ((k, n) for k, n in enumerate(parts) if isinstance(n, f.NotEvent)):
        before, after = ([n for n in some if not isinstance(n, f.NotEvent)] for some in (parts[:k], parts[k + 1 :]))
        if before and after:
            event = show(part)[4:-1] if part.condition is None else show(part)[3:]
            reason = f"this is one event that is not {event}, and {event} may still come before and after it"
            hint = f"None between is ({show(f.Sequence(before[-1], after[0]))}) WITHOUT {event}; a label says that one "
            yield QueryWarning(reason, span=part.span, hint=f"{hint}event is meant: {show(part)} AS other.")


def _check_compared(chosen: f.Selection | Select, own: Labels, known: Set[str]) -> None:
    """Check the labels after BY: each stands once, and the formula that chooses gives it."""
    for k, reference in enumerate(chosen.by):
        label = str(reference.label)
        if reference in chosen.by[:k]:
            raise QueryError(f"BY lists '{label}' twice", span=reference.span)
        if label not in own.assigned and not own.by_type(label):
            raise QueryError(
                f"'{label}' is not a label of the formula in which {chosen.strategy} chooses"
                if label in known
                else f"unknown label '{label}'",
                span=reference.span,
                suggestion=nearest(label, own.assigned),
                hint=f"The labels of that formula are {', '.join(sorted(own.assigned))}." if own.assigned else None,
            )


def _check_column_names(select: Select) -> None:
    if any(isinstance(item, CountItem) for item in select.projection.items):
        taken = {"detected_at", "detected_time", "end_time"}
    else:
        taken = {*BOOKKEEPING, "events"}
    shown = {name: name for name in taken} | {name.casefold(): name for name in select.key_columns}
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            continue
        if item.name.casefold() in shown:
            raise QueryError(
                f"column '{item.name}' would be a second result column of that name",
                span=item.span,
                hint="Give it another name after AS; upper and lower case count as equal. These names are taken: "
                f"{', '.join(sorted(shown.values()))}.",
            )
        shown[item.name.casefold()] = item.name


def refuse_aggregates(expression: r.Sremo | AutomatonFormula | f.EventKind) -> None:
    """Raise `QueryError` for an aggregate, SOME, a test on a set or a predicate of sets in SREMO or an automaton.

    A terminal knows the event read and one event for each register, and of several that a repetition writes there the
    last one. Keeping them all takes more than the registers of the papers.
    """
    for current in walk(expression):
        if isinstance(current, c.Some):
            raise QueryError(
                "a terminal reads one event and registers hold one, so SOME has nothing to choose", span=current.span
            )
        if isinstance(current, c.Aggregate | c.SetTest | c.PredicateCall) and is_about_set(current):
            raise QueryError(
                f"{current.name} aggregates several events, but a register holds one event",
                span=current.span,
                hint="In CEQL it aggregates all events of a label, as in SELECT * WHERE ((A AS x)+ ; B) FILTER "
                "sum(x.v) > 10. A running comparison needs none: [v > r.v] INTO r, repeated, is increasing(x.v).",
            )


def check_sremo(expression: r.Sremo) -> None:
    """Check everything of a SREMO expression that needs no schema.

    Raises `QueryError` as `check_query` does, for aggregates, and for a read after ``&`` of a register that both sides
    write.
    """
    terminals = [current for current in walk(expression) if isinstance(current, r.Terminal)]
    refuse_aggregates(expression)
    for terminal in terminals:
        check_expression(terminal.condition, bare=True)
    refuse_doubtful_reads(expression)
    if not any(terminal.label is not None for terminal in terminals):
        raise QueryError(
            "the expression marks no event, so it can have no match",
            span=expression.span,
            hint=f"Put MARK (label '{r.MARK}') or AS label after a terminal.",
        )


def _check_automaton(automaton: AutomatonFormula) -> None:
    refuse_aggregates(automaton)
    for step in automaton.steps:
        if step.condition is None:
            continue
        check_expression(step.condition, bare=True)
        known = [parameter for parameter, _ in step.selection] or automaton.registers
        for register, place in condition_labels(step.condition).items():
            if register not in known:
                raise QueryError(
                    f"the automaton has no register '{register}'",
                    span=place.span or automaton.span,
                    suggestion=nearest(register, known),
                )


# -- reads of registers in expressions of SREMO after ``&``


@dataclass(frozen=True)
class Doubtful:
    """A read of a register after ``&``: the node that reads it, and the terminals on both sides that write it.

    The second is None where the other side only reads the register.
    """

    register: str
    read: Node
    first: r.Terminal
    second: r.Terminal | None


@dataclass
class _RegisterUse:
    """What a part does to registers: ``reads`` that see what was there before it, registers that it ``always`` writes,
    the first terminals that ``write`` each, and the registers that are ``doubtful`` after it.
    """

    reads: dict[str, Node] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    writes: dict[str, r.Terminal] = field(default_factory=dict)
    doubtful: dict[str, tuple[r.Terminal, r.Terminal | None]] = field(default_factory=dict)


def refuse_doubtful_reads(expression: r.Sremo) -> None:
    """Raise `QueryError` for a read, after ``&``, of a register that both sides write: they are two registers."""
    found = doubtful_read(expression)
    if found is not None:
        assert found.second is not None
        raise QueryError(
            f"register '{found.register}' is read after '&', both sides of which write it: {show(found.first)} and "
            f"{show(found.second)}",
            span=found.read.span,
            hint="Each side has a register of its own; give them different names to read one of them here.",
        )


def doubtful_read(expression: r.Sremo, *, one_sided: bool = False) -> Doubtful | None:
    """A read, after ``&``, of a register that both sides write, if there is one.

    With ``one_sided`` also of one that one side writes, while the other one reads what was there before.
    """
    found: list[Doubtful] = []
    fold_only(expression, r.Sremo, lambda _, current, parts: _of(current, parts, one_sided, found))
    return found[0] if found else None


def _of(current: r.Sremo, parts: list[_RegisterUse], one_sided: bool, found: list[Doubtful]) -> _RegisterUse:
    match current:
        case r.Terminal():
            registers = current.registers
            return _RegisterUse(
                condition_labels(current.condition), frozenset(registers), dict.fromkeys(registers, current)
            )
        case r.Concatenation() | r.AnyMatch() | r.NextMatch():
            return _in_order(parts, found)
        case r.Alternation():
            return _merged(parts, parts[0].always & parts[1].always)
        case r.Intersection():
            return _both(parts[0], parts[1], one_sided)
        case r.Star() | r.Plus() | r.Optional():
            if not isinstance(current, r.Optional):
                found += _read_after(parts[0], parts[0])
            return parts[0] if isinstance(current, r.Plus) else _merged(parts, frozenset())
        case r.Unordered():
            for part, other in permutations(parts, 2):
                found += _read_after(part, other)
            return _merged(parts, frozenset().union(*(part.always for part in parts)))
        case r.Complement():
            return _RegisterUse(parts[0].reads)
    return parts[0] if parts else _RegisterUse()


def _read_after(before: _RegisterUse, after: _RegisterUse) -> list[Doubtful]:
    read = after.reads
    return [Doubtful(x, read[x], *terminals) for x, terminals in before.doubtful.items() if x in read]


def _in_order(parts: Iterable[_RegisterUse], found: list[Doubtful]) -> _RegisterUse:
    whole = _RegisterUse()
    for part in parts:
        found += _read_after(whole, part)
        seen = {register: place for register, place in part.reads.items() if register not in whole.always}
        left = {register: pair for register, pair in whole.doubtful.items() if register not in part.always}
        whole = _RegisterUse(
            {**seen, **whole.reads},
            whole.always | part.always,
            {**part.writes, **whole.writes},
            {**left, **part.doubtful},
        )
    return whole


def _merged(parts: Sequence[_RegisterUse], always: frozenset[str]) -> _RegisterUse:
    whole = _RegisterUse(always=always)
    for part in parts:
        whole.reads |= part.reads
        whole.writes |= part.writes
        whole.doubtful |= part.doubtful
    return whole


def _both(left: _RegisterUse, right: _RegisterUse, one_sided: bool) -> _RegisterUse:
    whole = _merged((left, right), left.always | right.always)
    for one, other in ((right, left), (left, right)):
        for register, terminal in one.writes.items():
            if register in other.writes or (one_sided and register in other.reads):
                whole.doubtful[register] = (terminal, other.writes.get(register))
    return whole
