"""How many events of a match a label may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import inf

from cerflow.base.graphs import reached
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.node import Node, fold, fold_only, walk
from cerflow.logic.analysis.scopes import labels_of, relation_names


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """How many events of a match a label may have.

    ``bounds`` are the least and the greatest number for each label of the formula, infinity for no upper bound.
    ``several`` are labels that may be given to several events of one match. ``types`` says that so may be the name of
    an event type that the formula does not mention, because EVENT or NOT can read several events of it.
    """

    bounds: dict[str, tuple[int, float]]
    several: frozenset[str]
    types: bool


def _repeated(expression: r.Sremo) -> frozenset[str]:
    """The labels of an expression of SREMO that may be given to several events of one match."""

    def visit(current: Node, below: Sequence[Counter[str]]) -> Counter[str]:
        match current:
            case r.Terminal():
                return Counter([current.label] if current.label is not None else [])
            case r.Complement():
                return Counter()
            case r.Alternation() | r.Intersection():
                return below[0] | below[1]
            case r.Star() | r.Plus():
                return Counter(dict.fromkeys(below[0], 2))
        found: Counter[str] = Counter()
        for part in below:
            found.update(part)
        return found

    counts = fold(expression, visit)
    return frozenset(label for label, count in counts.items() if count > 1)


def _given_again(automaton: AutomatonFormula) -> frozenset[str]:
    """The labels that some walk of an automaton gives to several events."""
    leaving = automaton.leaving()

    def again(label: str) -> bool:
        given = [step.target for step in automaton.steps if label in step.output]
        states = reached(given, lambda state: [step.target for step in leaving.get(state, ())])
        return any(label in step.output for state in states for step in leaving.get(state, ()))

    return frozenset(filter(again, automaton.labels))


#: For each label the least and the greatest number of its events in a match; None stands for all events of the match,
#: `_OTHER` for those of a type that the formula does not mention.
_Counts = dict[str | None, tuple[int, float]]
_OTHER = ""


def label_counts(formula: f.Formula) -> LabelCounts:
    """Fold a formula to the numbers of events that its labels may have."""
    # EVENT and NOT give their event the name of its type, which may be renamed. Labels that AS and renaming give count
    # as names of types only where the formula reads such types.
    nodes = list(walk(formula))
    given = {n.label if isinstance(n, f.As) else n.new for n in nodes if isinstance(n, f.As | f.Rename)}
    named = {label for n in nodes if isinstance(n, f.Project) for label in n.labels}
    named |= {n.old for n in nodes if isinstance(n, f.Rename)}
    names = relation_names(formula) | (named - given)

    counts: _Counts = fold_only(formula, f.Formula, lambda _, current, parts: _counted(current, parts, names))
    most = counts[None][1]
    bounds = {label: (least, min(greatest, most)) for label, (least, greatest) in counts.items() if label is not None}
    several = frozenset(label for label, (_, greatest) in bounds.items() if greatest > 1)
    types = _OTHER in several
    assigned = {label: bounds.get(label, (0, most)) for label in labels_of(formula).assigned}
    return LabelCounts(assigned, several - {_OTHER}, types)


def _counted(current: f.Formula, parts: list[_Counts], names: Set[str]) -> _Counts:
    match current:
        case f.EventType():
            return {None: (1, 1), current.name: (1, 1)}
        case f.SingleEvent():
            read = {*names, _OTHER} - labels_of(current).never
            return {None: (1, 1), **dict.fromkeys(read, (0, 1))}
        case r.Regular() | AutomatonFormula():
            several = _given_again(current) if isinstance(current, AutomatonFormula) else _repeated(current.expression)
            return {None: (0, inf), **{label: (0, inf if label in several else 1) for label in current.labels}}
        case f.As():
            return {**parts[0], current.label: parts[0][None]}
        case f.Rename() if current.old in parts[0] and current.old != current.new:
            inner = dict(parts[0])
            least, most = inner.pop(current.old)
            other = inner.get(current.new, (0, 0))
            return {**inner, current.new: (max(least, other[0]), min(most + other[1], inner[None][1]))}
        case f.Project():
            kept: _Counts = {label: parts[0].get(label, (0, 0)) for label in current.labels}
            least = max((least for least, _ in kept.values()), default=0)
            return {**kept, None: (least, min(parts[0][None][1], sum(most for _, most in kept.values())))}
        case f.Repeating(times=(rarely, often)):
            return {label: (least * rarely, most and most * often) for label, (least, most) in parts[0].items()}
        case f.Combination(counting=f.Counting(fewest, most, absent)):
            first, second = parts
            pairs = ((label, first.get(label, absent), second.get(label, absent)) for label in {**first, **second})
            return {label: (fewest(a[0], b[0]), most(a[1], b[1])) for label, a, b in pairs}
    return parts[0]
