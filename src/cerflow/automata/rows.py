"""What conditions and writes say of the rows of collections, beyond reading them."""

from __future__ import annotations

from cerflow.automata.guards import Stored
from cerflow.automata.transducer import Accumulation
from cerflow.language.condition import Condition, Expression
from cerflow.language.node import Node, node

__all__ = ["Joined", "NoRow"]


@node
class NoRow(Condition):
    """False for every row of the collection that ``row`` reads: it holds only if there is none."""

    row: Stored

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return ("no row of ", self.row)


@node
class Joined(Expression):
    """What a register that ``keeps`` a minimum, a maximum or one value makes of two values."""

    keeps: Accumulation
    left: Expression
    right: Expression

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return (f"{self.keeps}(", self.left, ", ", self.right, ")")
