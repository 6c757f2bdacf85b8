"""The flat form of a result has a column for every label and every field of its events.

The columns, and which of them hold lists, follow from the query and never from the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cerflow.language.automaton import AutomatonFormula
from cerflow.language.formula import UNNAMED, As, EventType, Project, Rename
from cerflow.language.node import walk
from cerflow.language.select import LabelItem, Select
from cerflow.language.sremo import Terminal
from cerflow.logic.analysis.multiplicity import label_counts, unaccompanied
from cerflow.logic.analysis.scopes import resolve

#: Instead of a label, for events of EVENT and NOT without one of the other labels.
OTHERS = "EVENT"


@dataclass(frozen=True)
class FlatColumn:
    """A column with a ``field`` of the event with a label, or a list if there may be ``several`` such events.

    The label None stands for events that have none of the labels with columns. ``attribute`` is the column of the
    input; it is None for the position and the type.
    """

    name: str
    label: str | None
    field: str
    attribute: str | None
    several: bool
    value_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return pa.list_(self.value_type) if self.several else self.value_type


def flat_columns(
    select: Select, others: Iterable[str], event_type: pa.StructType, fields: Sequence[tuple[str, str | None]]
) -> list[FlatColumn]:
    """The columns that replace ``events``, beside ``others``; each of the fields has its column of the input, or None.

    They are named ``label_field``. A name that is taken gets an underscore; upper and lower case count as equal, as in
    SQL.
    """
    if not select.projection.has_events:
        return []
    taken = {name.casefold() for name in (*others, "events")}
    found = []
    for label, several, attributes in _labels(select):
        for field, attribute in fields:
            if attribute is not None and attributes is not None and attribute not in attributes:
                continue
            name = f"{label or OTHERS}_{field}"
            while name.casefold() in taken:
                name += "_"
            taken.add(name.casefold())
            value_type = event_type.field(field).type
            found.append(FlatColumn(name, label, field, attribute, several, value_type))
    return found


def _labels(select: Select) -> list[tuple[str | None, bool, frozenset[str] | None]]:
    """The labels with columns, whether each may have several events, and the attributes that are shown (None: all)."""
    scopes = resolve(select.formula)
    known = scopes.labels[max(scopes.labels)]
    repeated = label_counts(select.formula)

    def several(label: str) -> bool:
        return label in repeated.several or (label not in known.assigned and repeated.types)

    listed: dict[str, frozenset[str] | None] = {}
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            before = listed.get(item.label, frozenset())
            listed[item.label] = None if item.attributes is None or before is None else before.union(item.attributes)
    if listed:
        return [(label, several(label), attributes) for label, attributes in listed.items()]
    # The name of an event type adds nothing if its events always have another label, too.
    alone = unaccompanied(select.formula, scopes)
    shown = (known.assigned - known.relations) | alone.labels
    found: list[tuple[str | None, bool, frozenset[str] | None]]
    found = [(None if label == UNNAMED else label, several(label), None) for label in _in_order(select, shown)]
    return [*found, (None, alone.others > 1, None)] if alone.others else found


def _in_order(select: Select, labels: Iterable[str]) -> list[str]:
    """The labels in the order of the query's text."""
    named: dict[str, None] = {}
    for current in walk(select.formula):
        match current:
            case EventType():
                # The name may occur under a label first, and alone only later.
                named.pop(current.name, None)
                named[current.name] = None
            case As():
                named[current.label] = None
            case Rename():
                named[current.new] = None
            case Project():
                named.update(dict.fromkeys(current.labels))
            case Terminal(label=str(label)):
                named[label] = None
            case AutomatonFormula():
                named.update(dict.fromkeys(sorted(current.labels)))
    return [label for label in named if label in labels]
