"""The base of all syntax trees: immutable, compared by value, and safe at any depth.

A sequence of a thousand steps is a tree a thousand levels deep, so nothing here recurses: hashes are computed once,
bottom-up, when a node is made, and equality and folds keep their own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from operator import is_
from types import UnionType
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from cerflow.base.errors import Span

N = TypeVar("N", bound="Node")
K = TypeVar("K", bound="Node")
R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A node of a syntax tree. ``span`` says where it stood in the text and takes no part in equality."""

    span: Span | None = field(default=None, kw_only=True, compare=False)

    #: How a node is written that belongs to no language: a text with its fields in braces, as in the printer.
    template: ClassVar[str] = ""
    #: The names of the fields that take part in equality.
    _parts: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        # Trees do not change and are walked and compared often, so this is computed once.
        known = self.__dict__
        values = known["_values"] = tuple([known[name] for name in self._parts])
        below = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
        known["_children"] = tuple([v for v in below if isinstance(v, Node)])
        known["_hash"] = hash((type(self).__name__, *map(_token, values)))

    def __getstate__(self) -> dict[str, Any]:
        # Only fields are pickled: hashes of strings differ from process to process.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one, in the order of the text."""
        return self.__dict__["_children"]  # type: ignore[no-any-return]

    def notation(self) -> tuple[str | Node, ...]:
        """The same as pieces, where a template cannot say it."""
        raise TypeError(f"{type(self).__name__} has no notation")

    def __hash__(self) -> int:
        return self.__dict__["_hash"]  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        known = self.__dict__.get("_same", self)
        if known is other.__dict__.get("_same", other):
            return True
        stack: list[tuple[Any, Any]] = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if isinstance(a, Node):
                if type(a) is not type(b) or hash(a) != hash(b):
                    return False
                stack.extend(zip(a.__dict__["_values"], b.__dict__["_values"]))
            elif isinstance(a, tuple):
                if not isinstance(b, tuple) or len(a) != len(b):
                    return False
                stack.extend(zip(a, b))
            elif _token(a) != _token(b):
                return False
        # A query that is read again is compared with what is cached for each of its parts.
        other.__dict__["_same"] = known
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __str__(self) -> str:
        from cerflow.language.printer import show  # the printer knows every node, so it cannot stand above them

        return show(self)


def _token(value: Any) -> Any:
    # 1, 1.0 and True are equal in Python but are different literals.
    return (type(value).__name__, value) if isinstance(value, bool | int | float) else value


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """Class decorator that makes a frozen dataclass with the equality of `Node`."""
    made = dataclass(frozen=True, eq=False, repr=False)(cls)
    made._parts = tuple(f.name for f in fields(made) if f.compare)
    return made


def walk(root: Node) -> Iterator[Node]:
    """Every occurrence of a node at or below ``root``, children before their parent, from left to right."""
    # This order backwards: each node before its children, the children from right to left.
    order: list[Node] = []
    stack = [root]
    while stack:
        current = stack.pop()
        order.append(current)
        stack.extend(current.children)
    return reversed(order)


def walk_into(root: Node, opens: Callable[[Node], bool]) -> Iterator[Node]:
    """The root and the nodes below those that are to be opened, each node before its children, from left to right."""
    stack = [root]
    while stack:
        current = stack.pop()
        yield current
        if opens(current):
            stack.extend(reversed(current.children))


def nested_operands(root: K, connectives: type | UnionType) -> list[K]:
    """The nodes of the kind of the root that nested connectives of some kinds combine, from left to right."""
    found = walk_into(root, lambda current: isinstance(current, connectives))
    return [cast(K, current) for current in found if not isinstance(current, connectives)]


def fold(root: Node, visit: Callable[[Node, Sequence[R]], R]) -> R:
    """Compute a value bottom-up: ``visit(node, values of its children)`` for every occurrence, without recursion."""
    done: list[R] = []
    for current in walk(root):
        if count := len(current.children):
            done[-count:] = [visit(current, done[-count:])]
        else:
            done.append(visit(current, ()))
    return done[0]


def fold_only(root: K, kind: type[K], visit: Callable[[int, K, list[R]], R]) -> R:
    """The same for the nodes of one kind: ``visit(occurrence, node, values of its children of that kind)``.

    The root is of that kind, and so is what stands above one. An occurrence is the index of a node in `walk`.
    """
    occurrences = count()

    def each(current: Node, below: Sequence[tuple[R, ...]]) -> tuple[R, ...]:
        occurrence = next(occurrences)
        if not isinstance(current, kind):
            return ()
        return (visit(occurrence, current, [value for part in below for value in part]),)

    return fold(root, each)[0]


def with_children(current: N, children: Sequence[Node]) -> N:
    """The same node with other children, in the order of ``children``; itself if nothing changes."""
    own = current.children
    if not own or all(map(is_, own, children)):
        return current
    supply = iter(children)
    changed: dict[str, Any] = {}
    for name in current._parts:
        value = getattr(current, name)
        if isinstance(value, Node):
            changed[name] = next(supply)
        elif isinstance(value, tuple) and any(isinstance(v, Node) for v in value):
            changed[name] = tuple(next(supply) if isinstance(v, Node) else v for v in value)
    return replace(current, **changed)


def rebuild(root: N, visit: Callable[[Node, Sequence[Node]], Node]) -> N:
    """The tree that `fold` makes of another one; it must be of a sort that may stand in the place of that."""
    return cast(N, fold(root, visit))


def transform(root: N, visit: Callable[[Node], Node]) -> N:
    """The same, with every node replaced by ``visit`` of it, which has its new children already."""
    return rebuild(root, lambda current, children: visit(with_children(current, children)))
