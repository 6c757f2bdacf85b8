"""Which columns of its input a query reads, and what it demands of them without a schema: numbers, or text.

Files without types (CSV, JSON lines) are read accordingly: a column of digits that is compared with a string stays
text, and a stray word in a column that is compared with a number spoils its row, not the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from cerflow.base.errors import QueryError
from cerflow.base.events import is_moment
from cerflow.base.nested import is_nested, root_of
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.language import condition as c
from cerflow.language.formula import As, AttributeWindow, EventKind, EventType, Rename
from cerflow.language.node import Node, fold, walk
from cerflow.language.select import LabelItem, Select
from cerflow.language.sremo import Regular, possible_fields
from cerflow.logic.analysis.kind_checks import kind_of_literal

#: The names in this many trees are remembered: a set of queries asks for those of all its queries again and again.
_REMEMBERED = 1024


@dataclass(frozen=True)
class ColumnUsage:
    """Names of columns by use; a column is in one of the sets at most, and in ``names``, all that the query reads.

    ``numbers`` are computed with or compared with numbers, ``text`` with strings, ``booleans`` with truth values; of
    ``ordered`` only the order of their values is known to count.
    """

    numbers: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    ordered: frozenset[str] = frozenset()
    booleans: frozenset[str] = frozenset()
    names: frozenset[str] = field(default=frozenset(), compare=False)


@lru_cache(_REMEMBERED)
def attributes_in(tree: Node) -> frozenset[str]:
    """The attributes that a tree reads: in conditions, expressions and windows, as keys, and nested ones as results."""
    found = set()
    for node in walk(tree):
        if isinstance(node, c.Attribute):
            found.add(node.name)
        elif isinstance(node, Regular):
            # Events show whether they are fields.
            found.update(possible.as_field.name for possible in possible_fields(node))
        elif isinstance(node, Select):
            found.update(name for key in node.partition for name in key)
        elif isinstance(node, AttributeWindow):
            found.add(node.attribute)
        elif isinstance(node, LabelItem):
            found.update(filter(is_nested, node.attributes or ()))
    return frozenset(found)


def columns_named(tree: Node, *roles: object) -> set[str] | None:
    """The columns that a query reads, or reports by their names, and those with a role; None for all of them.

    Roles that are not names are left to whoever checks the arguments, and may be fields of the columns named here.
    """
    reported = _reported_in(tree)
    if reported is None:
        return None
    found = attributes_in(tree) | reported
    for role in roles:
        if isinstance(role, str):
            found |= {role, role.partition(".")[0]}
    return set(map(root_of, found))


@lru_cache(_REMEMBERED)
def _reported_in(tree: Node) -> frozenset[str] | None:
    """The attributes that a query reports by their names; None if a predicate gets whole events."""
    nodes = list(walk(tree))
    if any(isinstance(node, c.LabelReference) for node in nodes):
        return None
    return frozenset(name for node in nodes if isinstance(node, LabelItem) for name in node.attributes or ())


def columns_by_type(tree: Node) -> dict[str, frozenset[str] | None]:
    """The columns that a query expects to have values, and of events of which types; None stands for all types.

    Columns that the query tests for null, or has another value for, are not among them.
    """
    nodes = list(walk(tree))
    named = {n.name for n in nodes if isinstance(n, EventType)}
    # Events of a kind may be of any type.
    kinds = {n.name for n in nodes if isinstance(n, EventKind)}
    labels = {name: {name} for name in named}
    for n in nodes:
        if isinstance(n, As):
            found = {inner.name for inner in walk(n.operand) if isinstance(inner, EventType)}
            # Other formulas read events of any type.
            labels.setdefault(n.label, set()).update(found or named)
        elif isinstance(n, Rename):
            labels[n.new] = set(named)
    read: list[tuple[str, str | None]] = [
        (name, None) for n in nodes if isinstance(n, Select) for key in n.partition for name in key
    ]
    read += [(n.attribute, None) for n in nodes if isinstance(n, AttributeWindow)]
    items = [n for n in nodes if isinstance(n, LabelItem)]
    read += [(name, n.label) for n in items for name in n.attributes or ()]
    read += [(n.name, n.label) for n in nodes if isinstance(n, c.Attribute)]
    by_column: dict[str, frozenset[str] | None] = {}
    for column, label in read:
        types = labels.get(label, named) if label is not None else named
        before = by_column.get(column, frozenset())
        by_column[column] = before | types if types and not kinds & types and before is not None else None
    optional = set[str]()
    for n in nodes:
        if isinstance(n, c.IsNull) or (isinstance(n, c.Function) and n.name == "coalesce"):
            optional |= attributes_in(n)
    return {column: types for column, types in by_column.items() if column not in optional}


def usage_of(tree: Node) -> ColumnUsage:
    """The uses of the columns that a query reads; columns with contradicting uses are in ``names`` alone."""
    demands = KindDemands(durations=False)
    demands.read(tree)
    uses = {name: demands.of(name).keys() & {ValueKind.FLOAT, ValueKind.STRING} for name in demands.names}
    rest = {name for name, use in uses.items() if not use}
    ordered = rest & demands.ordered
    items = (node for node in walk(tree) if isinstance(node, LabelItem))
    return ColumnUsage(
        numbers=frozenset(name for name, use in uses.items() if use == {ValueKind.FLOAT}),
        # A string that looks like a date may be meant for a column of timestamps.
        text=frozenset(name for name, use in uses.items() if use == {ValueKind.STRING}),
        ordered=frozenset(ordered),
        booleans=frozenset(name for name in rest - ordered if ValueKind.BOOLEAN in demands.of(name)),
        names=frozenset(attributes_in(tree).union(*(item.attributes or () for item in items))),
    )


#: An attribute whose kind an expression has, the attributes in a sum that nothing is known of, the kind of another
#: expression, or None for what goes with everything.
_Meaning = c.Attribute | frozenset[c.Attribute] | ValueKind | None


class KindDemands:
    """The demands of the trees read so far.

    A demand is FLOAT for a number of either kind, STRING, BOOLEAN, DURATION, or TIMESTAMP for a literal that may be
    read as a string or as a moment. ``durations`` says whether an attribute may be a duration. ``computed`` are
    attributes that are computed with, ``ordered`` those of whose values the order counts; ``faults`` are expressions of
    another kind than is needed, in their order.
    """

    def __init__(self, *, durations: bool) -> None:
        self.computed: set[str] = set()
        self.ordered: set[str] = set()
        self.faults: list[QueryError] = []
        self._durations = durations
        self._above: dict[str, str] = {}
        self._demands: dict[str, dict[ValueKind, Node]] = {}

    @property
    def names(self) -> list[str]:
        """All attributes that are read, sorted."""
        return sorted(self._above)

    def find(self, name: str) -> str:
        """The attribute that stands for all that are of the kind of this one."""
        self._above.setdefault(name, name)
        while self._above[name] != name:
            name = self._above[name]
        return name

    def of(self, name: str) -> dict[ValueKind, Node]:
        """The kinds that are demanded of an attribute, each with a place."""
        group = self.find(name)
        demanded: dict[ValueKind, Node] = {}
        for other in self._above:
            if self.find(other) == group:
                demanded = self._demands.get(other, {}) | demanded
        return demanded

    def read(self, root: Node) -> None:
        """Collect the demands of a tree."""
        fold(root, self._meaning)

    def demand(self, what: _Meaning, kind: ValueKind, place: Node) -> None:
        """Demand a kind of what an expression means; the parts of a sum are numbers if the sum is one."""
        if isinstance(what, c.Attribute):
            self._demands.setdefault(what.name, {}).setdefault(kind, place)
            self.find(what.name)
        elif isinstance(what, frozenset):
            for attribute in what if kind is ValueKind.FLOAT else ():
                self.demand(attribute, kind, attribute)
        elif what is not None and KIND_WORDS[what] != KIND_WORDS[kind]:
            reason = f"this is a {KIND_WORDS[what]}, but a {KIND_WORDS[kind]} is needed"
            self.faults.append(QueryError(reason, span=place.span))

    def _alike(self, parts: Sequence[tuple[Node, _Meaning]]) -> _Meaning:
        """Demand that expressions are of one kind; the meaning of any one of them."""
        known = [(place, what) for place, what in parts if what is not None]
        kind = next((what for _, what in known if isinstance(what, ValueKind)), None)
        if kind is not None:
            for place, what in known:
                if what is not kind:
                    self.demand(what, kind, place)
            return kind
        attributes = [what for _, what in known if isinstance(what, c.Attribute)]
        for one, other in pairwise(attributes):
            self._above[self.find(one.name)] = self.find(other.name)
        return attributes[0] if attributes else None

    def _meaning(self, current: Node, below: Sequence[_Meaning]) -> _Meaning:
        match current:
            case c.Attribute():
                self.find(current.name)
                return current
            case c.Literal(str(text)) if is_moment(text):
                return ValueKind.TIMESTAMP
            case c.Literal():
                kind = kind_of_literal(current)
                return ValueKind.FLOAT if kind is ValueKind.INTEGER else kind
            case c.TruthValue():
                return ValueKind.BOOLEAN
            case AttributeWindow():
                self.demand(c.Attribute(None, current.attribute), ValueKind.FLOAT, current)
            case c.Comparison() | c.In() | c.Between():
                if any(one.operator not in (Operator.EQ, Operator.NE) for one in c.comparisons(current)):
                    self.ordered |= _names(below)
                for part, what in zip(current.children[1:], below[1:]):
                    self._alike(((current.children[0], below[0]), (part, what)))
            case c.PatternTest():
                self.demand(below[0], ValueKind.STRING, current.operand)
            case c.SetTest():
                self.ordered |= _names(below)
            case c.If():
                self.computed |= _names(below)
                return self._alike((*zip(current.children[1:], below[1:]),))
            case c.Function("coalesce"):
                self.computed |= _names(below)
                return self._alike((*zip(current.arguments, below),))
            case c.Arithmetic():
                return self._arithmetic(current, below)
            case c.Negative():
                return self._call(current, below, c.Signature(ValueKind.FLOAT, durations=True))
            case c.Function() | c.Aggregate():
                if current.name in ("min", "max"):
                    self.ordered |= _names(below)
                return self._call(current, below, c.SIGNATURES[current.name])
        return None

    def _call(self, current: Node, below: Sequence[_Meaning], signature: c.Signature) -> _Meaning:
        gives = ValueKind.FLOAT if signature.gives is ValueKind.INTEGER else signature.gives
        if signature.takes is None:
            return below[0] if gives is None else gives
        self.computed |= _names(below)
        if signature.durations and self._may_be_duration(below[0]):
            return below[0]
        if signature.takes is not ValueKind.TIMESTAMP:
            # The numbers of substr are integers, which hardly ever are attributes.
            several = isinstance(current, c.Function) and current.name == "||"
            for child, what in zip(current.children, below if several else below[:1]):
                self.demand(what, signature.takes, child)
        return gives or signature.takes

    def _arithmetic(self, current: c.Arithmetic, below: Sequence[_Meaning]) -> _Meaning:
        self.computed |= _names(below)
        known = [kind for kind in below if isinstance(kind, ValueKind)]
        times = ValueKind.DURATION in known or ValueKind.TIMESTAMP in known
        if current.operator in ("+", "-") and (times or not known):
            self.ordered |= _names(below)
            parts = (what if isinstance(what, frozenset) else (what,) for what in below)
            return None if times else frozenset(a for part in parts for a in part if isinstance(a, c.Attribute))
        if times and current.operator == "*":
            for child, what in zip(current.children, below):
                self.demand(None if what is ValueKind.DURATION else what, ValueKind.FLOAT, child)
        if times or (current.operator in ("*", "/") and any(map(self._may_be_duration, below))):
            return None
        for child, what in zip(current.children, below):
            self.demand(what, ValueKind.FLOAT, child)
        return ValueKind.FLOAT

    def _may_be_duration(self, what: _Meaning) -> bool:
        if isinstance(what, ValueKind):
            return what is ValueKind.DURATION
        # A difference of times is one, whatever attributes hold.
        return self._durations or isinstance(what, frozenset)


def _names(meanings: Sequence[_Meaning]) -> set[str]:
    return {what.name for what in meanings if isinstance(what, c.Attribute)}


KIND_WORDS = {
    ValueKind.FLOAT: "number",
    ValueKind.STRING: "string",
    ValueKind.TIMESTAMP: "string",
    ValueKind.BOOLEAN: "boolean",
    ValueKind.DURATION: "duration",
}
