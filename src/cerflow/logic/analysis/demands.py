"""What conditions and expressions demand of attributes without a schema: kinds, and which attributes share one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cerflow.base.errors import QueryError
from cerflow.base.events import is_moment
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import Node, fold
from cerflow.logic.analysis.kind_checks import kind_of_literal

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
            case c.Comparison():
                if current.operator not in (Operator.EQ, Operator.NE):
                    self._order(below)
                self._alike((*zip(current.children, below),))
            case c.In():
                for item, what in zip(current.items, below[1:]):
                    self._alike(((current.operand, below[0]), (item, what)))
            case c.Between():
                self._order(below)
                for part, what in zip(current.children[1:], below[1:]):
                    self._alike(((current.operand, below[0]), (part, what)))
            case c.Like() | c.Regexp():
                self.demand(below[0], ValueKind.STRING, current.operand)
            case c.SetTest():
                self._order(below)
            case c.If():
                self._compute(below)
                return self._alike((*zip(current.children[1:], below[1:]),))
            case c.Function("coalesce"):
                self._compute(below)
                return self._alike((*zip(current.arguments, below),))
            case c.Arithmetic():
                return self._arithmetic(current, below)
            case c.Negative():
                return self._call(current, below, c.Signature(ValueKind.FLOAT, durations=True))
            case c.Function() | c.Aggregate():
                if current.name in ("min", "max"):
                    self._order(below)
                return self._call(current, below, c.SIGNATURES[current.name])
        return None

    def _call(self, current: Node, below: Sequence[_Meaning], signature: c.Signature) -> _Meaning:
        gives = ValueKind.FLOAT if signature.gives is ValueKind.INTEGER else signature.gives
        if signature.takes is None:
            return below[0] if gives is None else gives
        self._compute(below)
        if signature.durations and self._may_be_duration(below[0]):
            return below[0]
        if signature.takes is not ValueKind.TIMESTAMP:
            # The numbers of substr are integers, which hardly ever are attributes.
            several = isinstance(current, c.Function) and current.name == "||"
            for child, what in zip(current.children, below if several else below[:1]):
                self.demand(what, signature.takes, child)
        return gives or signature.takes

    def _arithmetic(self, current: c.Arithmetic, below: Sequence[_Meaning]) -> _Meaning:
        self._compute(below)
        known = [kind for kind in below if isinstance(kind, ValueKind)]
        times = ValueKind.DURATION in known or ValueKind.TIMESTAMP in known
        if current.operator in ("+", "-") and (times or not known):
            self._order(below)
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

    def _compute(self, below: Sequence[_Meaning]) -> None:
        self.computed.update(what.name for what in below if isinstance(what, c.Attribute))

    def _order(self, below: Sequence[_Meaning]) -> None:
        self.ordered.update(what.name for what in below if isinstance(what, c.Attribute))


KIND_WORDS = {
    ValueKind.FLOAT: "number",
    ValueKind.STRING: "string",
    ValueKind.TIMESTAMP: "string",
    ValueKind.BOOLEAN: "boolean",
    ValueKind.DURATION: "duration",
}
