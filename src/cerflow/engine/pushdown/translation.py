"""Propositions about one event in the language of another system: one traversal for Arrow and Spark.

Every leaf that is translated is true of the same events as to the engine. A leaf that a system might decide otherwise
has no translation; see `cerflow.logic.conditions.propositions.weakened`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from cerflow.base.operators import Operator
from cerflow.base.text_patterns import literal_parts
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
)
from cerflow.logic.conditions.guards import Satisfied, TypeTest
from cerflow.logic.conditions.propositions import translated

#: A condition of the other system.
C = TypeVar("C")


class UndecidedError(Exception):
    """The other system might decide a leaf otherwise than the engine."""


class Translation(ABC, Generic[C]):
    """Propositions about the columns of events, as conditions of a system that joins them by ``&``, ``|`` and ``~``.

    The methods that a system fills in raise `UndecidedError` for what has no translation. ``type`` is the name of the
    column with the types of events.
    """

    type: str

    def decides(self, leaf: Condition) -> bool:
        """Whether a leaf has a translation."""
        try:
            self._known(leaf)
        except UndecidedError:
            return False
        return True

    def proposition(self, whole: Condition) -> C:
        """True where a proposition holds, all of whose leaves are decided; elsewhere false or null."""
        found: C = translated(whole, self._known)
        return found

    @cached_property
    def _translations(self) -> dict[Condition, C]:
        return {}

    def _known(self, leaf: Condition) -> C:
        """The translation of a leaf, made once: Spark needs ten calls from Python for a comparison."""
        if leaf not in self._translations:
            self._translations[leaf] = self._leaf(leaf)
        return self._translations[leaf]

    def _leaf(self, leaf: Condition) -> C:
        match leaf:
            case Constant(value):
                return self._constant(value)
            case Not(Satisfied(condition)):
                return self._not_true(condition)
            case TypeTest(name):
                return self._comparison(Operator.EQ, Attribute(None, self.type), Literal(name))
            case IsNull(operand, negated):
                return self._null(operand, negated)
            case Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case In(operand, items, negated):
                return self._among(operand, items, negated)
            case Like(operand, pattern, negated):
                accepted: Any = self._like(self._text(operand), pattern)
                found: C = ~accepted if negated else accepted
                return found
        raise UndecidedError

    def _like(self, text: Any, pattern: str) -> Any:
        match literal_parts(encodable(pattern)):
            case [whole]:
                return text == whole
            case ["", part, ""]:
                return self._contains(text, part)
            case [first, last]:
                return self._begins_and_ends(text, first, last)
        return self._like_otherwise(text, pattern)

    def _like_otherwise(self, text: C, pattern: str) -> C:
        """Whether a text fits a pattern with ``_``, or with ``%`` in several other places."""
        raise UndecidedError

    @abstractmethod
    def _constant(self, value: bool) -> C: ...

    @abstractmethod
    def _not_true(self, condition: Condition) -> C:
        """Whether a condition is false or unknown."""

    @abstractmethod
    def _null(self, operand: Expression, negated: bool) -> C: ...

    @abstractmethod
    def _comparison(self, operator: Operator, left: Expression, right: Expression) -> C: ...

    @abstractmethod
    def _among(self, operand: Expression, items: Sequence[Literal], negated: bool) -> C: ...

    @abstractmethod
    def _text(self, operand: Expression) -> C:
        """The values of an expression that is text."""

    @abstractmethod
    def _contains(self, text: C, part: str) -> C: ...

    @abstractmethod
    def _begins_and_ends(self, text: C, first: str, last: str) -> C:
        """Whether a text begins with one text and ends with another one after it."""


def encodable(text: str) -> str:
    """The text; raises `UndecidedError` if it has halves of characters (surrogates), which no event has."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise UndecidedError
    return text
