"""The events of matches, in whatever form a result has them: nested, flat, or as JSON text in a column of CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError
from cerflow.look.viewing.packed_columns import text_codes

_NO_POSITIONS = (
    "the events of these matches have no positions, so they cannot be found in the stream; leave "
    "positions=False (--no-positions) out, and on Spark say positions=True"
)
#: The columns of a result that say where a match lies.
EXTENT = ("detected_at", "detected_time", "start", "end", "start_time", "end_time")
#: Between the labels of an event, and between them and its type; no name has them.
_LABEL_END, _TYPE = "\x1f", "\x1e"
_JSON_ERRORS = (ValueError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class MatchEvents:
    """The events of matches: match ``k`` has those numbered ``numbers[offsets[k]:offsets[k + 1]]``.

    An event with the same labels in several matches is one event here. ``positions`` are its place in the stream,
    ``labels`` a number for each that stands for the labels in ``label_sets``, ``attributes`` its type and attributes.
    ``rest`` are the columns of the result besides its events.
    """

    offsets: Ints
    numbers: Ints
    positions: Ints
    labels: Ints
    label_sets: Sequence[tuple[str, ...]]
    attributes: pa.Table
    rest: pa.Table


def match_events(matches: pa.Table) -> MatchEvents:
    """The events of a result; raises `InputError` for a table that is none, or a result without positions.

    Results without events have those of their start and end, or the one that detected them.
    """
    names = matches.column_names
    if not names and not len(matches):  # JSON lines without a line
        return _nested(_listed([]), matches)
    if "detected_at" not in names and "detected_time" in names:
        raise InputError(_NO_POSITIONS)
    if "detected_at" not in names:
        raise InputError(
            f"this is not a result of cerflow: the column 'detected_at' is missing; the columns are {', '.join(names)}"
        )
    if "events" in names:
        column = one_array(matches.column("events"))
        lists = column if is_list(column.type) else _from_json(column)
        matches = matches.drop_columns(["events"])
        if pc.any(pc.greater(pc.list_value_length(lists), 0)).as_py() or not len(matches):
            return _nested(lists, matches)
    labels = [name.removesuffix("_position") for name in matches.column_names if name.endswith("_position")]
    if labels:
        return _from_flat(matches, labels)
    ends = [name for name in ("start", "end") if name in names and matches.column(name).null_count < len(matches)]
    ends = ends or ["detected_at"]
    found = [
        [{"position": row[name], "labels": [name]} for name in ends if row[name] is not None]
        for row in matches.select(ends).to_pylist()
    ]
    return _nested(_listed(list(map(_joined, found))), matches)


def is_list(data_type: pa.DataType) -> bool:
    """Whether values of a type are lists, of any size."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def _from_json(column: pa.Array) -> pa.Array:
    """Events as JSON text, which CSV has."""
    found: list[list[dict[str, Any]]] = []
    for row, text in enumerate(column.cast(pa.string()).to_pylist()):
        try:
            events = json.loads(text) if text else []
            found.append([{**event, "labels": list(event["labels"])} for event in events])
        except _JSON_ERRORS as error:
            raise InputError(f"row {row}: the column 'events' does not hold the events of a match: {error}") from error
    return _listed(found)


def _listed(found: Sequence[Sequence[Mapping[str, Any]]]) -> pa.Array:
    """Events in Python as a column of lists; attributes without a common type are text."""
    events = [event for match in found for event in match]
    names = list(dict.fromkeys(["position", "labels", "type", *(name for event in events for name in event)]))
    columns = []
    for name in names:
        values = [event.get(name) for event in events]
        try:
            columns.append(pa.array(values, pa.list_(pa.string()) if name == "labels" else None))
        except (pa.ArrowException, OverflowError, TypeError):
            columns.append(pa.array([None if v is None else str(v) for v in values], pa.string()))
    offsets = np.concatenate([[0], np.cumsum([len(match) for match in found], dtype=np.int64)])
    rows = pa.StructArray.from_arrays(columns, names) if events else pa.array([], pa.struct([("position", pa.int64())]))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), rows)


def _from_flat(matches: pa.Table, labels: Sequence[str]) -> MatchEvents:
    """Events of the flat form, which has a column ``label_field`` for every label and field."""
    fields: dict[str, dict[str, str]] = {label: {} for label in labels}
    for name in matches.column_names:
        # Of labels that begin alike, the longest is meant.
        label = max((one for one in labels if name.startswith(f"{one}_")), key=len, default=None)
        if label is not None:
            fields[label][name] = name[len(label) + 1 :]
    found: list[list[dict[str, Any]]] = [[] for _ in range(len(matches))]
    for label, columns in fields.items():
        rows = matches.select(list(columns)).rename_columns(list(columns.values())).to_pylist()
        for match, row in zip(found, rows):
            values = {name: _several(value) for name, value in row.items()}
            positions = values["position"]
            for k, position in enumerate(positions):
                event = {name: some[k] if k < len(some) else None for name, some in values.items()}
                if position is not None:
                    match.append({**event, "labels": [label], "position": position})
    plain = [name for name in matches.column_names if not any(name in columns for columns in fields.values())]
    return _nested(_listed(list(map(_joined, found))), matches.select(plain))


def _several(value: Any) -> list[Any]:
    """The values of a label, of which there may be several: a list, in CSV as JSON text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    return value if isinstance(value, list) else [value]


def _joined(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events of one match in their order, each once with all its labels."""
    found: dict[int, dict[str, Any]] = {}
    for event in sorted(events, key=lambda event: int(event["position"])):
        known = found.setdefault(event["position"], {**event, "labels": []})
        known["labels"].extend(event["labels"])
        known.update({name: value for name, value in event.items() if known.get(name) is None})
    return list(found.values())


def _nested(lists: pa.Array, rest: pa.Table) -> MatchEvents:
    """The events of lists, each event and its labels once."""
    lengths, events = pc.list_value_length(lists), one_array(pc.list_flatten(lists))
    fields = {field.name: pc.struct_field(events, [field.name]) for field in events.type} if len(events) else {}
    positions = fields.pop("position", pa.array([], pa.int64()))
    if positions.null_count:
        raise InputError(_NO_POSITIONS)
    places: Ints = positions.cast(pa.int64()).to_numpy(zero_copy_only=False)
    labels = fields.pop("labels", pa.array([[]] * len(places), pa.list_(pa.string())))
    types = fields.get("type", pa.nulls(len(places), pa.string()))
    joined = pc.binary_join(labels.cast(pa.list_(pa.string())), _LABEL_END)
    texts = pc.binary_join_element_wise(
        pc.coalesce(joined, ""), pc.coalesce(types.cast(pa.string()), ""), _TYPE, null_handling="replace"
    )
    codes, sets = text_codes(texts)
    number = codes.astype(np.int64)
    _, first, where = np.unique(places * max(1, len(sets)) + number, return_index=True, return_inverse=True)
    kept = pa.array(first)
    attributes = pa.table({name: values.take(kept) for name, values in fields.items()})
    ends = np.cumsum(lengths.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    own = [_own_labels(text or "") for text in sets]
    offsets = np.concatenate([[0], ends])
    return MatchEvents(offsets, where.ravel(), places[first], number[first], own, attributes, rest)


def _own_labels(text: str) -> tuple[str, ...]:
    """The labels of an event; its type is one of them only if there are no others."""
    joined, _, event_type = text.rpartition(_TYPE)
    labels = [label for label in joined.split(_LABEL_END) if label]
    return tuple(label for label in labels if label != event_type) or tuple(labels) or (event_type or "event",)
