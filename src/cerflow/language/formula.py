"""Formulas of complex event logic (spec §2) as immutable trees; every operator of the language is declared here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from math import inf
from operator import add
from typing import ClassVar, NamedTuple

from cerflow.base.errors import QueryError
from cerflow.base.events import UNNAMED as UNNAMED
from cerflow.language.condition import Condition, LabelReference
from cerflow.language.node import Node, nested_operands, node


class Strategy(StrEnum):
    """Selection strategies: of a query all of them, as operators of a formula all but ALL."""

    ALL = "ALL"
    ANY = "ANY"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"

    @property
    def compares(self) -> bool:
        """Whether the strategy compares complex events by their positions, so that BY may say which ones count."""
        return self in (Strategy.NEXT, Strategy.LAST, Strategy.MAX)


def check_by(strategy: Strategy, by: tuple[LabelReference, ...]) -> None:
    """Raise `QueryError` if a strategy that compares no positions is to compare those of some labels."""
    if by and not strategy.compares:
        raise QueryError(
            f"{strategy} does not compare positions, so BY has no effect on it",
            span=by[0].span,
            hint="NEXT, LAST and MAX do.",
        )


class Window(Node):
    """A bound on the extent of a complex event."""


@node
class CountWindow(Window):
    """``n EVENTS``: max(C) - min(C) < n."""

    events: int


@node
class DurationWindow(Window):
    """A duration: t(max C) - t(min C) < duration, held in microseconds."""

    microseconds: int


@node
class AttributeWindow(Window):
    """``size [attribute]``: the same on a numeric attribute that never decreases."""

    size: int | float
    attribute: str


class Formula(Node):
    """A formula: for a stream and positions i, j it denotes a set of complex events.

    An operator's class says what analysis, rewritings and pictures need to know of it beside its meaning, here and in
    the bases below. ``sign`` is how it is written. ``gapless`` says that its complex events are consecutive, and
    detected by their last event, if those of its operands are. ``whole`` says that its complex events consist of whole
    ones of its operands, of the left one of an exclusion. ``naming`` are the fields of the labels in `names`.
    """

    sign: ClassVar[str] = ""
    gapless: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    naming: ClassVar[tuple[str, ...]] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The labels that the operator itself gives, keeps, compares or renames."""
        values = [getattr(self, field) for field in self.naming]
        each = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
        return tuple(v if isinstance(v, str) else str(v.label) for v in each)


class SingleEvent(Formula):
    """What reads one event."""

    gapless = True


class Embedded(Formula):
    """A formula in another notation, whose complex events have `labels` of its own."""

    @property
    def labels(self) -> frozenset[str]:
        """The labels that it may give to events."""
        raise NotImplementedError


class Counting(NamedTuple):
    """How many events of a label both operands have together, at least and at most; ``absent`` if one never has it."""

    least: Callable[[int, int], int] = add
    most: Callable[[float, float], float] = add
    absent: tuple[int, float] = (0, 0)


@node
class Combination(Formula):
    """Two operands, of which a complex event has the events of both, or of either one."""

    left: Formula
    right: Formula

    counting: ClassVar[Counting] = Counting()


class Join(Combination):
    """Complex events of both operands together; one of these may be absent, see `can_be_absent`."""


@node
class EventType(SingleEvent):
    """``R`` or ``stream>R``: one event of that type."""

    name: str
    stream: str | None = None


@node
class EventKind(EventType):
    """``name`` or ``stream>name`` below ``DEFINE name AS condition``: one event on which the condition is true.

    The condition reads the current event; a kind above it in the text is written out in it.
    """

    condition: Condition = field(kw_only=True)


@node
class OfAnyType(SingleEvent):
    """One event whose type the formula does not name.

    The label is the type, but `UNNAMED` for the types ``hidden``, whose names are those of event kinds. Where all
    events have one type, ``only`` is it; no event has one of the types ``absent``.
    """

    hidden: tuple[str, ...] = field(default=(), kw_only=True)
    only: str | None = field(default=None, kw_only=True)
    absent: frozenset[str] = field(default=frozenset(), kw_only=True)


@node
class AnyEvent(OfAnyType):
    """``EVENT`` or ``stream>EVENT``: one event of any type."""

    stream: str | None = None


@node
class NotEvent(OfAnyType):
    """``NOT(R FILTER c)``: one event that does not satisfy ``R FILTER c``; condition None is ``NOT(R)``."""

    event: EventType
    condition: Condition | None = None


@node
class As(Formula):
    """``φ AS label``."""

    operand: Formula
    label: str

    gapless = True
    naming = ("label",)


@node
class Rename(Formula):
    """``φ [old -> new]``."""

    operand: Formula
    old: str
    new: str

    sign = "[… -> …]"
    gapless = True
    naming = ("old", "new")


@node
class Filter(Formula):
    """``φ FILTER condition``."""

    operand: Formula
    condition: Condition

    gapless = True


class Disjunction(Combination):
    """``φ OR ψ``."""

    sign = "OR"
    gapless = True
    counting = Counting(min, max)


class Sequence(Join):
    """``φ ; ψ``."""

    sign = ";"


class StrictSequence(Join):
    """``φ : ψ``."""

    sign = ":"
    gapless = True


@node
class Repeating(Formula):
    """One operand, several times in sequence."""

    operand: Formula

    #: How often at least and at most.
    times: ClassVar[tuple[int, float]] = (1, inf)


class Iteration(Repeating):
    """``φ+``."""

    sign = "+"


class StrictIteration(Repeating):
    """``φ :+``."""

    sign = ":+"
    gapless = True


@node
class Repetition(Repeating):
    """``φ{least,most}``: φ between ``least`` and ``most`` times in sequence; ``φ:{…}`` if ``strict``.

    ``most`` None is not an upper bound.

    With ``least`` 0 (``φ?`` is ``φ{0,1}``) φ may be absent; `can_be_absent` says where such a part may stand.
    Raises `QueryError` for bounds that no number of repetitions can meet.
    """

    least: int
    most: int | None
    strict: bool = False

    @property
    def sign(self) -> str:  # type: ignore[override]
        """``?``, or the bounds in braces."""
        if self.least == 0 and self.most == 1 and not self.strict:
            return "?"
        bounds = (
            f"{self.least}" if self.least == self.most else f"{self.least},{'' if self.most is None else self.most}"
        )
        return f"{':' * self.strict}{{{bounds}}}"

    @property
    def gapless(self) -> bool:  # type: ignore[override]
        """Whether nothing can come between two repetitions."""
        return self.strict or self.most == 1

    @property
    def times(self) -> tuple[int, float]:  # type: ignore[override]
        """How often at least and at most."""
        return self.least, inf if self.most is None else self.most

    def __post_init__(self) -> None:
        if self.most is not None and (self.most < 1 or self.most < self.least):
            raise QueryError(
                f"no number of repetitions fits {self.sign.removeprefix(':')}",
                span=self.span,
                hint="In {n,m} n is at most m, and m is at least 1.",
            )
        super().__post_init__()


def can_be_absent(formula: Formula) -> bool:
    """Whether a formula is an optional part, or a sequence or ALL of nothing but optional parts."""
    return all(isinstance(part, Repetition) and part.least == 0 for part in nested_operands(formula, Join))


class Conjunction(Combination):
    """``φ AND ψ``: the complex events of both."""

    sign = "AND"
    gapless = True
    counting = Counting(max, min, (0, inf))


class All(Join):
    """``φ ALL ψ``: unions of a complex event of each."""

    sign = "ALL"
    counting = Counting(max)


@node
class Exclusion(Formula):
    """The complex events of the left formula that no match of the right formula excludes."""

    left: Formula
    right: Formula


class Unless(Exclusion):
    """``φ UNLESS ψ``: no match of ψ between the positions φ is evaluated on."""

    sign = "UNLESS"


class Without(Exclusion):
    """``φ WITHOUT ψ``: no match of ψ between the first and the last event of the complex event."""

    sign = "WITHOUT"


@node
class NotFollowedBy(Exclusion):
    """``φ NOT FOLLOWED BY ψ FOR window``: no match of ψ between the end of φ and a deadline (spec §10).

    The deadline lies one window after the event that completes φ. It is a time, a position or a value of an attribute.
    """

    window: Window

    sign = "NOT FOLLOWED BY"


@node
class Project(Formula):
    """``PROJECT A, B (φ)``: only those labels are kept."""

    labels: tuple[str, ...]
    operand: Formula

    sign = "PROJECT"
    whole = False
    naming = ("labels",)


def positions_alone(formula: Formula) -> Formula:
    """The formula with one label without a name for all events, so that only the support tells matches apart."""
    return Project((UNNAMED,), As(formula, UNNAMED), span=formula.span)


@node
class Start(Formula):
    """``START(φ)``: the complex event begins at the first position of the evaluation."""

    operand: Formula

    sign = "START"
    gapless = True


@node
class Selection(Formula):
    """``STRICT(φ)``, ``NEXT(φ)``, ``LAST(φ)``, ``MAX(φ)``, ``ANY(φ)`` (one complex event, whichever).

    ``NEXT BY x, y (φ)``, likewise LAST and MAX, compare only the positions that carry one of the labels in ``by``;
    complex events that agree there are equal to the order, so all of them are kept. Raises `QueryError` if ``by``
    stands at another strategy.
    """

    strategy: Strategy
    operand: Formula
    by: tuple[LabelReference, ...] = ()

    naming = ("by",)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """False for strategies that compare complex events with others."""
        return self.strategy is Strategy.STRICT

    def __post_init__(self) -> None:
        check_by(self.strategy, self.by)
        super().__post_init__()


@node
class Within(Formula):
    """``φ WITHIN window``."""

    operand: Formula
    window: Window

    gapless = True
