"""The query around a formula (spec §4) as an immutable tree."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from cerflow.base.errors import Span
from cerflow.base.nested import unnested, untaken
from cerflow.language.condition import Aggregate, Attribute, Expression, LabelReference
from cerflow.language.formula import Formula, Strategy, Window, check_by
from cerflow.language.node import Node, node

#: The columns that every match has, before keys and computed columns; tables for people show them last.
BOOKKEEPING = ("detected_at", "detected_time", "start", "end", "start_time", "end_time")


class Consumption(StrEnum):
    """The partial matches that a match uses up: none, all begun so far, or those of its own substream."""

    NONE = "NONE"
    ANY = "ANY"
    PARTITION = "PARTITION"


class ProjectionKind(StrEnum):
    """``*`` (all labels, and perhaps computed columns), ``NONE`` (no events), or a list of items."""

    ALL = "*"
    NONE = "NONE"
    ITEMS = "ITEMS"


@node
class LabelItem(Node):
    """``label`` or ``label[attribute, …]``; attributes None means all of them."""

    label: str
    attributes: tuple[str, ...] | None = None


@node
class ExpressionItem(Node):
    """``expression AS name``."""

    expression: Expression
    name: str


def column_name(expression: Expression) -> str | None:
    """The name of a computed column without AS (spec §11): ``x_v`` of ``x.v``, ``min_x_v`` of ``min(x.v)``.

    None for a value that needs AS.
    """
    match expression:
        case Attribute(label=str(label), name=name):
            return unnested(f"{label}_{name}").replace(".", "_")
        case Aggregate(name=name, argument=LabelReference(label=str(label))):
            return f"{name}_{label}"
        case Aggregate(name=name, argument=Attribute() as argument):
            return f"{name.replace(' ', '_')}_{column_name(argument)}"
    return None


@node
class CountItem(Node):
    """``COUNT(*) AS name``."""

    name: str


@node
class Projection(Node):
    """The reported part of a match. With ``*`` the ``items`` are computed columns, with ``NONE`` there are none."""

    kind: ProjectionKind
    items: tuple[LabelItem | ExpressionItem | CountItem, ...] = ()

    @property
    def has_events(self) -> bool:
        """Whether the events of a match are reported: of ``*``, and where labels are listed."""
        return self.kind is ProjectionKind.ALL or any(isinstance(item, LabelItem) for item in self.items)


@node
class Select(Node):
    """``SELECT … FROM … WHERE … PARTITION BY … WITHIN … CONSUME BY … LIMIT …``.

    ``by`` are the labels of ``SELECT NEXT BY x, y …``, as in `Selection`, with the same error. ``partition`` is a tuple
    of keys, each a tuple of alternative attributes (the first that an event has counts), and ``key_spans`` says where
    each of these stood in the text, if there is one.
    """

    formula: Formula
    projection: Projection = Projection(ProjectionKind.ALL)
    strategy: Strategy = Strategy.ALL
    streams: tuple[str, ...] = ()
    partition: tuple[tuple[str, ...], ...] = ()
    window: Window | None = None
    consume: Consumption = Consumption.NONE
    limit: int | None = None
    by: tuple[LabelReference, ...] = ()
    key_spans: tuple[tuple[Span, ...], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_by(self.strategy, self.by)
        super().__post_init__()

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the result's columns for the partition keys; one that is taken gets an underscore after it."""
        taken = {*BOOKKEEPING, "events"}
        return tuple(untaken(unnested(key[0]), taken, str.casefold) for key in self.partition)


@node
class Definition(Node):
    """``DEFINE name AS SELECT …``: every match is an event of the stream ``name``."""

    name: str
    select: Select


@node
class Statements(Node):
    """Definitions and the query that may read their streams (spec §10, composition)."""

    definitions: tuple[Definition, ...]
    query: Select
