"""Checks everything in the image of a state that kernels rely on, so that a snapshot cannot mislead them.

Each function checks one structure, and raises `SnapshotError`, which says what is wrong. Numbers that point somewhere
must point to something that exists. Values that are only compared, such as those of attributes, may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Ints
from cerflow.base.errors import SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.layout import State
from cerflow.engine.state.compact import ARRAYS, first_state, places_in, room_of, widths
from cerflow.engine.tables.transducer_tables import TransducerTables

_INT64 = range(-(2**63), 2**63)


def require(condition: object, what: str) -> None:
    """Raises `SnapshotError` unless the condition holds."""
    if not condition:
        raise SnapshotError(f"the snapshot is damaged: {what}")


def image_in(arrays: Mapping[str, NDArray[Any]], tables: TransducerTables) -> State:
    """The compact state with these arrays, if types and shapes agree; rows of one kind have one number in all."""
    empty = first_state(tables, 1)
    found: dict[str, NDArray[Any]] = {}
    for name, array in ARRAYS.items():
        if not array.kept:
            continue
        kept_as, like = array.name or name, getattr(empty, name)
        require(kept_as in arrays, f"it has no array '{kept_as}'")
        given = arrays[kept_as]
        fits = given.dtype == like.dtype and given.shape == (len(given), *like[array.at].shape[1:])
        require(fits, f"the array '{kept_as}' is of type {given.dtype} and shape {given.shape}")
        require(len(given) < 2**31 - 1, f"the array '{kept_as}' has {len(given)} rows")
        alike = all(len(found[other]) == len(given) for other in found if ARRAYS[other].used == array.used)
        require(alike, f"the array '{kept_as}' has {len(given)} rows, unlike others")
        found[name] = given
        if array.columns:
            found[name] = np.zeros((len(given), *like.shape[1:]), like.dtype)
            found[name][array.at] = given
        empty.counters[array.used] = len(given)
    return empty._replace(**found)


def check_image(image: State, tables: TransducerTables, positions: Ints, events: int, strings: int) -> None:
    """Check a whole image. There are ``strings`` known strings, and events are kept at ``positions``.

    ``events`` is the number of events so far.
    """
    _check_first_rows(image, tables)
    _check_refs(image, tables)
    _check_marks(image, positions)
    _check_nodes(image, tables)
    _check_configurations(image, tables, events)
    _check_classes(image, tables)
    _check_members(image, tables)
    _check_collections(image, tables, strings)
    _check_codes(image, tables, strings)


def _check_first_rows(image: State, tables: TransducerTables) -> None:
    """The empty mark, the complex event without events and the empty collection are there, and refer to nothing."""
    require(len(image.marks), "the empty mark is missing")
    require(tuple(image.marks[layout.NO_MARK].tolist()) == (-1, 0), "the empty mark marks an event")
    require(len(image.nodes), "the node of the complex event without events is missing")
    require(image.nodes[layout.BOTTOM, layout.W_MEASURE] == layout.NOT_BEGUN, "the node without events has begun")
    fields = [layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST, layout.I_MARK, layout.I_RANK]
    alone = image.nodes.view(np.int32)[layout.BOTTOM, fields].tolist() == [-1, -1, -1, 0, layout.NO_MARK, 1]
    require(alone, "the node of the complex event without events continues")
    require(len(image.set_index) and image.set_index[0, layout.SET_SIZE] == 0, "the empty collection is missing")
    require(max(len(image.nodes), len(image.marks)) == 1 or not tables.detecting, "a query that only detects has nodes")


def _check_refs(image: State, tables: TransducerTables) -> None:
    """Numbers that refer to something are in the bounds that are declared for them, beyond the first row."""
    counted = {**room_of(image), "nodes": len(image.nodes), "marks": len(image.marks)}
    sizes = {**counted, **widths(tables), "classes": len(image.config) + 1}
    for name, array in ARRAYS.items():
        for ref, whole in array.ref_columns(getattr(image, name)):
            column = whole[1:] if array.shared else whole
            require(_within(column, ref.least, sizes[ref.to]), ref.otherwise)
            require(not ref.older or (column <= np.arange(len(column))).all(), ref.otherwise)


def check_counts(header: Mapping[str, Any], schema: Schema) -> None:
    """Check the counts of the record checker: numbers of events, and the latest time as the time column has it."""
    for name in ("accepted", "refused", "late"):
        check_number(header, name, least=0)
    if "last_position" in header:
        check_number(header, "last_position", least=-1)
    require("latest" in header, "it does not say the latest time")
    latest = header["latest"]
    if latest is None:
        return
    require(schema.time is not None, "it has a time, but the events have none")
    kind = schema.columns.field(schema.time).type
    if type(latest) is float:
        has_fractions = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        require(has_fractions and latest == latest, f"its time is {latest!r:.60}")
    else:
        check_number(header, "latest")


def check_origin(header: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise `SnapshotError` unless a snapshot is of the plan of a machine, whose facts are its ``own``."""
    # The first snapshots of this version do not name the automaton, and later ones not what it remembers.
    header = {**{name: own[name] for name in ("automaton", "remembering")}, **header}
    if {name: header.get(name) for name in own} == own:
        return
    if header.get("query") != own["query"]:
        raise SnapshotError(f"the snapshot is of another query: {header.get('query')!s:.2000}")
    for name in ("type", "typed_by", "constant_type", "time", "time_unit", "stream", "forget", "position", "positions"):
        if header.get(name) != own.get(name):
            given, wanted = (str(some.get(name)) for some in (header, own))
            raise SnapshotError(f"the snapshot was taken with {name}={given:.60}, but this recogniser has {wanted}")
    if header.get("columns") == own["columns"]:
        raise SnapshotError("the snapshot numbers states or labels differently from this version of cerflow")
    try:
        theirs, ours = (pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(some["columns"]))) for some in (header, own))
    except (KeyError, TypeError, ValueError, OSError):
        raise SnapshotError("the snapshot is damaged: its events are not described") from None
    given, wanted = (", ".join(f"{f.name} {f.type}" for f in some) for some in (theirs, ours))
    raise SnapshotError(f"the snapshot is of events with the columns {given:.500}; this recogniser has {wanted:.500}")


def check_events(events: pa.Table, positions: Ints, columns: pa.Schema, came: int) -> None:
    """Events have the kept columns; their positions ascend, and are below the number of events so far."""
    require(events.schema == columns, "its events have other columns")
    rows = events.num_rows
    require(positions.dtype == np.int64 and positions.ndim == 1, "the positions are not a list of 64-bit integers")
    require(len(positions) == rows, f"there are {len(positions)} positions of {rows} events")
    require((positions[1:] > positions[:-1]).all(), "the positions of events do not ascend")
    require(not rows or (positions[0] >= 0 and positions[-1] < came), f"not all positions are among {came} events")


def _check_marks(image: State, positions: Ints) -> None:
    """Marks are of kept events, in their order."""
    at = image.marks[1:, layout.M_POSITION]
    require((at[1:] >= at[:-1]).all(), "the marks are not in the order of the events")
    require(np.isin(at, positions).all(), "a mark is of an event that is not kept")


def _check_nodes(image: State, tables: TransducerTables) -> None:
    """Nodes leave the window no later than their children, and no earlier than their neighbours in the heap."""
    nodes = image.nodes
    if tables.lists:
        _check_lists(image)
        return
    small, measure = nodes.view(np.int32), nodes[:, layout.W_MEASURE]
    for column in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT):
        there = np.flatnonzero(small[:, column] >= 0)
        older, newer = measure[small[there, column]], measure[there]
        fits = older >= newer if column == layout.I_CHILD else older <= newer
        require(fits.all(), "the starts of nodes of the match graph are not in the order of a heap")
    rank, right = small[:, layout.I_RANK], small[:, layout.I_RIGHT]
    below = right >= 0
    ranked = (rank[below] == rank[right[below]] + 1).all()
    require(ranked, "the ranks of nodes of the match graph are not those of a heap")
    require((small[:, layout.I_REST] == layout.BOTTOM).all(), "a node of a heap continues like one of a list")


def _check_lists(image: State) -> None:
    """Lists: each node is the top of a tree of earlier nodes, and knows its content."""
    nodes = image.nodes[layout.BOTTOM + 1 :]
    small, everything = nodes.view(np.int32), image.nodes.view(np.int32)
    child, left, right, rest = (small[:, k] for k in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST))
    for target in (left, right, rest):
        require((target != layout.BOTTOM).all(), "a list of the match graph goes on with what is not a part")
    nothing = (child == layout.BOTTOM) & (small[:, layout.I_MARK] == layout.NO_MARK)
    require(not nothing.any(), "a part of the match graph has neither a mark nor parts")
    whole = left >= 0
    behind = np.where(whole, everything[left, layout.I_REST], -1)
    require((right == behind).all(), "a tree of the match graph does not have its second half")
    after = np.where(right >= 0, everything[right, layout.I_REST], -1)
    require((rest[whole] == after[whole]).all(), "a list of the match graph does not go on after its first tree")
    rank = small[:, layout.I_RANK]
    for half in (left, right):
        there = half >= 0
        higher = (rank[there] == everything[half[there], layout.I_RANK] + 1).all()
        require(higher, "the ranks of nodes of the match graph are not those of trees")
    require((small[:, layout.I_WEIGHT] >= 1).all(), "a list of the match graph has no weight")
    start, latest, measure = (nodes[:, k] for k in (layout.W_START, layout.W_LATEST, layout.W_MEASURE))
    value, best, least = (nodes[:, k] for k in (layout.W_VALUE, layout.W_BEST, layout.W_LEAST))
    ordered = (start <= latest) & (latest <= measure) & (least <= best) & (best <= value)
    require(ordered.all(), "a node of the match graph does not know what is in its list")
    tree, list_ = (layout.W_LATEST, layout.W_BEST), (layout.W_MEASURE, layout.W_LEAST)
    for target, (later, less) in ((left, tree), (right, tree), (np.where(whole, left, rest), list_)):
        tops = np.flatnonzero(target >= 0)
        before = image.nodes[target[tops]]
        fits = (nodes[tops, later] >= before[:, later]) & (nodes[tops, less] <= before[:, less])
        require(fits.all(), "a node of the match graph does not know what is in its list")


def _check_configurations(image: State, tables: TransducerTables, events: int) -> None:
    """Configurations are ordered by partition and group; only sets of several have several members.

    A query without PARTITION BY has one partition; a partition has counted at most as many events as came.
    """
    counted = image.partition_long[:, layout.PARTITION_EVENTS]
    require(tables.partitioned or len(counted) == 1, "a query without PARTITION BY has several partitions")
    possible = not tables.partitioned or _within(counted, 0, events + 1)
    require(possible, "a partition counts more events than came")
    config, states = image.config, tables.transducer.states
    group, count = config[:, layout.C_GROUP], config[:, layout.C_COUNT]
    place = config[:, layout.C_PARTITION].astype(np.int64) * (states + 1) + group
    require((place[1:] >= place[:-1]).all(), "the configurations are not in order")
    require((count[group < states] == 1).all(), "a configuration of one member has several")
    require((count[group == states] >= 2).all(), "a configuration of several members has one")
    if not tables.detecting:
        starts = image.nodes[config[:, layout.C_ROOT], layout.W_MEASURE]
        fits = (image.config_long[:, layout.L_START] == starts).all()
        require(fits, "a configuration does not begin where its root does")


def _check_classes(image: State, tables: TransducerTables) -> None:
    """Classes are numbered without gaps, partition by partition; only strategies have classes."""
    own, partition = image.config[:, layout.C_CLASS], image.config[:, layout.C_PARTITION]
    if not tables.arrays.options[layout.O_STRATEGY]:
        require(not own.any(), "a query without a strategy has classes")
        return
    held = np.flatnonzero(own)
    order = held[np.lexsort((partition[held], own[held]))]
    classes, of = own[order], partition[order]
    steps = np.diff(classes, prepend=0)
    require(((steps == 0) | (steps == 1)).all(), "the classes are not numbered one by one")
    require((of[1:][steps[1:] == 0] == of[:-1][steps[1:] == 0]).all(), "a class is in two partitions")
    require((of[1:] >= of[:-1]).all(), "the classes are not in the order of their partitions")


def _check_members(image: State, tables: TransducerTables) -> None:
    """Sets of several members have them in the order of state and registers, each once."""
    several = image.config[:, layout.C_GROUP] == tables.transducer.states
    counts = image.config[several, layout.C_COUNT].astype(np.int64)
    members, values = image.members, image.member_values
    require(int(counts.sum()) == len(members), "configurations do not have the members that are there")
    arrays = tables.arrays
    # Slots that the state does not use, and the slot that keeps only its greatest value, do not count.
    slot = np.arange(values.shape[1])
    counts_not = (slot >= arrays.slots[members][:, None]) | (slot == arrays.dominated[members][:, None])
    words = np.column_stack([members, np.where(counts_not, 0, values)])
    before, after = words[:-1], words[1:]
    differ = before != after
    first = differ.argmax(axis=1)
    rows = np.arange(len(differ))
    less = differ.any(axis=1) & (before[rows, first] < after[rows, first])
    together = np.repeat(np.arange(len(counts)), counts)
    require((less | (together[1:] != together[:-1])).all(), "the members of a configuration are not in order")


def _check_collections(image: State, tables: TransducerTables, known: int) -> None:
    """Registers hold collections that are there, of whole rows; strings in these are known; nothing else is one."""
    sizes = image.set_index[:, layout.SET_SIZE]
    require((sizes >= 0).all() and (sizes <= len(image.set_words)).all(), "a collection has an impossible size")
    require(int(sizes.sum()) == len(image.set_words), "collections do not have the words that are there")
    starts, held = np.cumsum(sizes) - sizes, np.arange(len(sizes)) == 0
    for array, rows, slot, register in places_in(image, tables, tables.set_slots):
        numbers, kinds = getattr(image, array)[rows, slot], tables.kinds[register]
        require(_within(numbers, 0, len(sizes)), "a register holds a collection that is not there")
        require((sizes[numbers] % len(kinds) == 0).all(), "a collection does not have whole rows")
        held[numbers] = True
        coded = [f for f, kind in enumerate(kinds) if kind.coded]
        for number in np.unique(numbers).tolist() if coded else ():
            words = image.set_words[starts[number] : starts[number] + sizes[number]].reshape(-1, len(kinds))
            require(_are_codes(words[:, coded], known), "a collection holds a string that is not there")
    require(held.all(), "there is a collection that no register holds")


def _check_codes(image: State, tables: TransducerTables, known: int) -> None:
    """Registers and keys of strings hold codes of known strings."""
    for array, rows, slot, _ in places_in(image, tables, tables.string_slots):
        require(_are_codes(getattr(image, array)[rows, slot], known), "a register holds a string that is not there")
    keys = [1 + k for k, kind in enumerate(tables.key_kinds) if kind.coded]
    require(_are_codes(image.partition_long[:, keys], known), "a partition has a key that is not there")


def check_strings(texts: Any, tables: TransducerTables) -> None:
    """The strings are texts, each once, and those of the query come first."""
    require(isinstance(texts, list) and all(type(text) is str for text in texts), "its strings are not a list of texts")
    require(len(set(texts)) == len(texts), "a string is there twice")
    own = tables.strings.texts[: tables.own_strings]
    require(texts[: len(own)] == own, "the strings do not begin with those of the query")
    try:
        "".join(texts[len(own) :]).encode()
    except UnicodeEncodeError as error:
        raise SnapshotError(f"the snapshot is damaged: its strings are not Unicode: {error.reason}") from error


def check_number(header: Mapping[str, Any], name: str, least: int = _INT64.start, most: int = _INT64.stop - 1) -> int:
    """An integer in the description of a snapshot."""
    value = header.get(name)
    require(type(value) is int and least <= value <= most, f"'{name}' is {value!r:.60}")
    assert isinstance(value, int)
    return value


def _within(numbers: NDArray[Any], least: int, end: int) -> bool:
    return not numbers.size or bool(numbers.min() >= least and numbers.max() < end)


def _are_codes(words: Ints, known: int) -> bool:
    """Whether all words are null, or codes of that many known strings."""
    return bool((((words >= 0) & (words < known)) | (words == layout.NULL)).all())
