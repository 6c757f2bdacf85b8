"""Conditions and values of transitions that do not exist in the language.

A guard is a `Condition` whose attributes are bare: they are read on the current event. Some kinds of leaf reach
beyond that event: `Stored` reads a register; `Of` stands for the event of a label that is not resolved yet,
`LabelAggregate` and `Asked` for all events of a label, and these occur only while a formula is being compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.automaton import Satisfied as Satisfied
from cerflow.language.automaton import StreamTest as StreamTest
from cerflow.language.automaton import TypeTest as TypeTest
from cerflow.language.automaton import event_test as event_test
from cerflow.language.formula import Window
from cerflow.language.node import N, Node, node, rebuild, transform, walk, with_children

C = TypeVar("C", c.Condition, c.Expression)


@node
class Measure(c.Expression):
    """The measure of a window on the current event: its time, its position in the substream, or an attribute."""

    window: Window

    template = "measure of {window}"


@node
class Stored(c.Expression):
    """Field ``field`` of a register; of a collection it ranges over all rows (a universal condition)."""

    register: int
    field: int

    template = "r{register}.{field}"


class AllRows(Stored):
    """All rows of a collection at once, for a predicate of a set."""

    template = "r{register}"


@node
class SetCall(c.Condition):
    """A predicate of sets, asked about the events in a collection (None: there are none) and the current event.

    ``sets`` has the number of the set that each argument reads, -1 for one that is the same for all events. Of the
    first ``gathered`` sets, bare arguments are the values at each event. A row of the collection has the position of
    its event, the sets that the event belongs to (as bits, if there are several), and these values. ``here`` has the
    sets that the current event belongs to, as bits. Every other set is one event, with the values of its arguments.
    """

    name: str
    arguments: tuple[c.Expression, ...]
    sets: tuple[int, ...]
    gathered: int
    rows: AllRows | None
    here: int

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        pieces = [piece for argument in self.arguments for piece in (", ", argument)][1:]
        own: list[str | Node] = ["{(", *pieces, ")}"]
        if max(self.sets) > 0 or not self.gathered:
            names = ", ".join(f"#{k + 1}" for k in range(self.gathered) if self.here >> k & 1)
            own, pieces = [f"EVENT in {names}"], [*pieces, " | "] if self.gathered else pieces
        else:
            pieces = []
        kept: list[str | Node] = [] if self.rows is None else [self.rows]
        events = [*kept, *([" ∪ "] if kept and self.here else []), *(own if self.here else [])]
        return (f"{self.name}(", *pieces, *(events or ["∅"] * (self.gathered > 0)), ")")


@node
class Shown(c.Expression):
    """A leaf under the name that people know; it occurs in texts only."""

    name: str

    template = "{name}"


@node
class InWindow(c.Condition):
    """The measure of the current event is less than the window's size beyond the measure stored at the start."""

    start: Stored
    window: Window

    template = "within {window} of {start}"


@node
class NoRow(c.Condition):
    """False for every row of the collection that ``row`` reads: it holds only if there is none."""

    row: Stored

    template = "no row of {row}"


@node
class Of(c.Expression):
    """A bare expression evaluated on the event of ``label``, which the formula at occurrence ``scope`` assigns."""

    label: str
    scope: int
    expression: c.Expression

    template = "{label}.({expression})"


@node
class LabelAggregate(c.Expression):
    """An aggregate or a test on a set, over all events that the filtered formula gives to ``label``.

    ``argument`` is bare. ``min``, ``max``, ``first`` and ``last`` select an event by the argument and give its
    ``value``, which may be a function of the argument.
    """

    name: str
    label: str
    argument: c.Expression
    value: c.Expression

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        if isinstance(self.argument, c.LabelReference):
            return (f"{self.name}({self.label})",)
        dot = "." if isinstance(self.value, c.Attribute) else ": "
        return (f"{self.name}({self.label}{dot}", self.value, ")")


@node
class Asked(c.Expression):
    """The answer of a predicate of sets about all events that the filtered formula gives to some labels.

    ``sets`` has the number of the set that each argument reads, as in `SetCall`. The first sets are the events of the
    ``labels``, and their arguments are bare; the others are single events.
    """

    name: str
    labels: tuple[str, ...]
    arguments: tuple[c.Expression, ...]
    sets: tuple[int, ...]

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        names = dict(enumerate(f"{label}." for label in self.labels))
        pieces = [piece for a, k in zip(self.arguments, self.sets) for piece in (", ", names.get(k, ""), a)]
        return (f"{self.name}(", *pieces[1:], ")")


def reads_events(argument: Node) -> bool:
    """Whether the argument of a predicate differs from event to event."""
    return any(isinstance(n, c.Attribute | c.LabelReference) for n in walk(argument))


def leaves(condition: Node) -> tuple[c.Expression, ...]:
    """The distinct `Of` and `Stored` leaves, in order of appearance."""
    # Constructions ask again and again, and trees do not change, so the answer stays with the tree.
    known: tuple[c.Expression, ...] | None = condition.__dict__.get("_leaves")
    if known is None:
        found = dict.fromkeys(n for n in walk(condition) if isinstance(n, Of | Stored))
        known = condition.__dict__["_leaves"] = tuple(found)
    return known


def is_local(condition: Node) -> bool:
    """Whether a condition or expression depends on the current event alone."""
    if "_local" not in condition.__dict__:
        # All parts learn it at once, so that asking for each of them stays linear.
        for part in walk(condition):
            below = all(child.__dict__["_local"] for child in part.children)
            part.__dict__["_local"] = below and not isinstance(part, Of | Stored)
    local: bool = condition.__dict__["_local"]
    return local


def bare(expression: N) -> N:
    """The expression or condition without labels, read on the current event."""
    return c.with_labels(expression, lambda _: None)


def without_brackets(condition: c.Condition) -> c.Condition:
    """The condition with ``x.`` before every attribute of ``x[…]`` instead of the bracket."""

    def open_(current: Node) -> Node:
        if not isinstance(current, c.Bracket):
            return current
        label = current.label
        inner = c.with_labels(current.condition, lambda own: own or label)
        if any(isinstance(n, c.Attribute | c.LabelReference) and n.label == label for n in walk(inner)):
            return inner
        # A bracket that reads nothing of its label still speaks of every event of it.
        return c.And(inner, c.IsNull(c.Function("position", (c.LabelReference(label),)), True))

    return transform(condition, open_)


def separate(condition: c.Condition, scopes: dict[str, int]) -> c.Condition:
    """The condition with an `Of` leaf for every largest part that reads one label; ``scopes`` are those of labels.

    A part that is a condition becomes a comparison of its truth value, so that a later event can ask for it.
    """
    condition = without_brackets(condition)
    owner: dict[int, str | None] = {}  # identity of a node -> its only label; absent means none, None means several

    def wrap(current: Node, label: str) -> Node:
        own = bare(current)
        if isinstance(own, c.Condition):
            return c.Comparison(Operator.EQ, Of(label, scopes[label], c.TruthValue(own)), c.Literal(True))
        assert isinstance(own, c.Expression)
        return Of(label, scopes[label], own)

    for current in walk(condition):
        labels = {owner[id(child)] for child in current.children if id(child) in owner}
        if isinstance(current, c.Attribute | c.LabelReference) and current.label is not None:
            labels.add(current.label)
        if labels or isinstance(current, LabelAggregate | Asked):
            alone = len(labels) == 1 and not isinstance(current, LabelAggregate | Asked)
            owner[id(current)] = next(iter(labels)) if alone else None

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if owner.get(id(current), "") is not None:
            return current
        # A child with one label below a parent with several is a largest part.
        kept = zip(current.children, below, map(owner.get, map(id, current.children)))
        return with_children(current, [child if label is None else wrap(part, label) for part, child, label in kept])

    whole = owner.get(id(condition))
    return rebuild(condition, visit) if whole is None else cast(c.Condition, wrap(condition, whole))


def substitute(condition: C, replacements: dict[c.Expression, c.Expression]) -> C:
    """The tree with other leaves; ``[condition] = TRUE`` becomes the condition itself again."""

    def visit(current: Node) -> Node:
        if isinstance(current, Of | Stored | LabelAggregate | Asked):
            return replacements.get(current, current)
        match current:
            case c.Comparison(Operator.EQ, c.TruthValue(inner), c.Literal(True)):
                return inner
        return current

    return transform(condition, visit)


def with_registers(tree: C, numbers: Mapping[int, int]) -> C:
    """The condition or expression with other numbers for some registers."""
    if is_local(tree):
        return tree

    def renumber(current: Node) -> Node:
        if isinstance(current, Stored):
            return replace(current, register=numbers.get(current.register, current.register))
        return current

    return transform(tree, renumber)
