"""Symbolic regular expressions with memory and output (spec §5) as immutable trees.

Conditions are those of `cerflow.language.condition`: a bare attribute is that of the event read, ``r.attr`` that of
the event in register ``r``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import cast

from cerflow.language.automaton import AutomatonFormula
from cerflow.language.condition import Attribute, Bracket, Condition, Constant, LabelReference, PredicateCall
from cerflow.language.formula import As, Embedded, EventType, Rename, Window
from cerflow.language.node import N, Node, node, rebuild, transform, walk, walk_into, with_children

#: The label that ``MARK`` gives.
MARK = "event"


class Sremo(Node):
    """An expression of SREMO."""


class Epsilon(Sremo):
    """``EPSILON``: the empty string."""


class Empty(Sremo):
    """``EMPTY``: no string at all."""


@node
class Terminal(Sremo):
    """``[condition] AS label INTO registers``: reads one event; label None reads it without marking it."""

    condition: Condition
    label: str | None = None
    registers: tuple[str, ...] = ()


@node
class Binary(Sremo):
    """An operator with two operands."""

    left: Sremo
    right: Sremo


class Concatenation(Binary):
    """``e . f``."""


class Alternation(Binary):
    """``e | f``."""


class Intersection(Binary):
    """``e & f``: the matches of both."""


@node
class Unary(Sremo):
    """An operator with one operand."""

    operand: Sremo


class Star(Unary):
    """``e*``."""


class Plus(Unary):
    """``e+``."""


class Optional(Unary):
    """``e?``."""


class Complement(Unary):
    """``!e``: reads what e does not match, marks nothing."""


@node
class Windowed(Unary):
    """``e WITHIN window``."""

    window: Window


@node
class Strategic(Sremo):
    """A strategy for one or more operands."""

    parts: tuple[Sremo, ...]


class AnyMatch(Strategic):
    """``any(e, …)``: skip-till-any-match between the operands; of one iteration, between its repetitions."""


class NextMatch(Strategic):
    """``next(e, …)``: skip-till-next-match between the operands; of one iteration, between its repetitions."""


class Unordered(Strategic):
    """``unordered(e, …)``: the operands in any order."""


#: One event, whatever it is, left out of the output.
ANY_EVENT = Terminal(Constant(True))


@node
class Regular(Embedded):
    """An expression as a formula: its complex events at j are its matches on S[m…j], i ≤ m ≤ j, that mark event j."""

    expression: Sremo

    sign = "SREMO"

    @property
    def labels(self) -> frozenset[str]:
        """The labels that some terminal gives."""
        return frozenset(n.label for n in walk(self.expression) if isinstance(n, Terminal) and n.label is not None)


def names_told_apart(root: N) -> N:
    """The same tree in which a name alone as an argument of a predicate is the register of that name only where the
    expression writes it, and otherwise the attribute of the event read.

    A register may be written far from where it is read, so this needs the complete expression.
    """

    if isinstance(root, Sremo):
        return _with_attributes(root)
    return transform(root, lambda current: _with_attributes(current) if isinstance(current, Regular) else current)


def written_registers(tree: Node) -> set[str]:
    """The registers that the terminals in a tree write."""
    return {register for current in walk(tree) if isinstance(current, Terminal) for register in current.registers}


def left_registers(expression: Sremo) -> frozenset[str]:
    """The registers that an expression may leave written: a complement leaves them as they are."""
    parts = walk_into(expression, lambda current: not isinstance(current, Complement))
    return frozenset(register for part in parts if isinstance(part, Terminal) for register in part.registers)


def _with_attributes(root: N) -> N:
    written = written_registers(root)

    def argument(value: Node) -> Node:
        if isinstance(value, LabelReference) and value.label is not None and value.label not in written:
            return Attribute(None, value.label, span=value.span)
        return value

    def visit(current: Node, below: Sequence[Node]) -> Node:
        return with_children(current, [*map(argument, below)] if isinstance(current, PredicateCall) else below)

    return rebuild(root, visit)


def with_fields(root: N, columns: Collection[str] = ()) -> N:
    """The same tree in which ``a.b`` is field b of attribute a where a bracket or terminal of a text says so and there
    is no label or register a. Only a complete query or expression shows which there are.

    A register that SREMO reads and never writes is an empty one unless ``columns`` of events have its name.
    """
    if not any(isinstance(current, Attribute) and current.doubtful for current in walk(root)):
        return root
    labels = frozenset(label for current in walk(root) for label in _labels_in(current))

    def visit(current: Node) -> Node:
        match current:
            case Bracket():
                return _fields_for(current, lambda a: a.label not in labels)
            case Regular():
                possible = set(possible_fields(current))
                return _fields_for(current, lambda a: a in possible and {a.label, a.as_field.name} & known)
            case AutomatonFormula():
                registers = {*current.registers, *(name for step in current.steps for name, _ in step.selection)}
                return _fields_for(current, lambda a: a.label not in registers)
        return current

    known = frozenset(columns)
    if isinstance(root, Sremo):
        return cast(N, cast(Regular, visit(Regular(root))).expression)
    return transform(root, visit)


def possible_fields(expression: Node) -> list[Attribute]:
    """What reads registers that an expression never writes, in its text, and may be a field of a struct."""
    written = written_registers(expression)
    read = (n for n in walk(expression) if isinstance(n, Attribute) and n.doubtful)
    return [attribute for attribute in read if attribute.label not in written]


def _fields_for(root: Node, chosen: Callable[[Attribute], object]) -> Node:
    """The tree with those doubtful attributes as fields for which ``chosen`` is true."""

    def visit(current: Node) -> Node:
        return current.as_field if isinstance(current, Attribute) and current.doubtful and chosen(current) else current

    return transform(root, visit)


def _labels_in(current: Node) -> Iterable[str]:
    """The labels that a node may give to events."""
    match current:
        case EventType(name):
            return (name,)
        case As() | Rename():
            return current.names
        case Terminal(label=str(label)):
            return (label,)
        case AutomatonFormula():
            return current.labels
    return ()
