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

from cerflow.engine import layout
from cerflow.engine.layout import State
from cerflow.engine.state.image import CLASS, COUNT, GROUP, PARTITION, ROOT, START, Image, set_holders, set_widths
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.errors import SnapshotError
from cerflow.schema import Schema
from cerflow.values.array_types import Ints, array_types

#: Heaps of fewer than 2⁶³ nodes do not have a higher rank.
_HIGHEST = 63
_INT64 = range(-(2**63), 2**63)


def require(condition: object, what: str) -> None:
    """Raises `SnapshotError` unless the condition holds."""
    if not condition:
        raise SnapshotError(f"the snapshot is damaged: {what}")


def image_in(arrays: Mapping[str, NDArray[Any]], empty: State) -> Image:
    """The image of these arrays, if their types and shapes agree with an empty state."""
    widths = {
        "nodes": empty.nodes.shape[1],
        "marks": 2,
        "configs": 5,
        "config_long": 2,
        "values": empty.values.shape[1],
        "member_values": empty.values.shape[1],
        "partition_long": empty.partition_long.shape[1],
    }
    for name, declared in array_types(Image).items():
        require(name in arrays, f"it has no array '{name}'")
        array = arrays[name]
        shape = (len(array), widths[name]) if name in widths else (len(array),)
        fits = array.dtype == declared.dtype and array.shape == shape
        require(fits, f"the array '{name}' is of type {array.dtype} and shape {array.shape}")
        require(len(array) < 2**31 - 1, f"the array '{name}' has {len(array)} rows")
    return Image(**{name: arrays[name] for name in Image._fields})


def check_image(image: Image, tables: TransducerTables, positions: Ints, events: int, strings: int) -> None:
    """Check a whole image. There are ``strings`` known strings, and events are kept at ``positions``.

    ``events`` is the number of events so far.
    """
    check_marks(image, tables, positions)
    check_nodes(image, tables)
    check_partition_images(image, tables, events)
    check_configurations(image, tables)
    check_classes(image, tables)
    check_members(image, tables)
    check_collections(image, tables, strings)
    check_codes(image, tables, strings)


def check_counts(header: Mapping[str, Any], schema: Schema) -> None:
    """Check the counts of the record checker: numbers of events, and the latest time as the time column has it."""
    check_number(header, "accepted", least=0)
    check_number(header, "refused", least=0)
    check_number(header, "late", least=0)
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


def check_events(events: pa.Table, positions: Ints, columns: pa.Schema, came: int) -> None:
    """Events have the kept columns; their positions ascend, and are below the number of events so far."""
    require(events.schema == columns, "its events have other columns")
    rows = events.num_rows
    require(positions.dtype == np.int64 and positions.ndim == 1, "the positions are not a list of 64-bit integers")
    require(len(positions) == rows, f"there are {len(positions)} positions of {rows} events")
    require((positions[1:] > positions[:-1]).all(), "the positions of events do not ascend")
    require(not rows or (positions[0] >= 0 and positions[-1] < came), f"not all positions are among {came} events")


def check_marks(image: Image, tables: TransducerTables, positions: Ints) -> None:
    """After the empty mark, marks are of kept events, in their order, with label sets of the query."""
    marks = image.marks
    require(len(marks), "the empty mark is missing")
    require(tuple(marks[layout.NO_MARK].tolist()) == (-1, 0), "the empty mark marks an event")
    require(len(marks) == 1 or not tables.detecting, "a query that only detects has marks")
    at, labels = marks[1:, layout.M_POSITION], marks[1:, layout.M_LABEL]
    require((at[1:] >= at[:-1]).all(), "the marks are not in the order of the events")
    places = np.searchsorted(positions, at)
    beyond = places == len(positions)
    kept = not beyond.any() and bool((positions[places] == at).all())
    require(kept, "a mark is of an event that is not kept")
    require(_within(labels, 1, len(tables.label_sets)), "a mark has a label set that the query does not have")


def check_nodes(image: Image, tables: TransducerTables) -> None:
    """Nodes point to older ones, which leave the window no earlier (children) or no later (neighbours in the heap)."""
    nodes = image.nodes
    require(len(nodes), "the node of the complex event without events is missing")
    require(len(nodes) == 1 or not tables.detecting, "a query that only detects has nodes")
    small = nodes.view(np.int32)
    measure, numbers = nodes[:, layout.W_MEASURE], np.arange(len(nodes))
    require(measure[layout.BOTTOM] == layout.NOT_BEGUN, "the complex event without events has begun")
    if tables.lists:
        _check_lists(image)
        return
    for column in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT):
        target = small[:, column]
        require(((target >= -1) & (target < numbers)).all(), "a node of the match graph points to no older one")
        there = np.flatnonzero(target >= 0)
        older, newer = measure[target[there]], measure[there]
        fits = older >= newer if column == layout.I_CHILD else older <= newer
        require(fits.all(), "the starts of nodes of the match graph are not in the order of a heap")
    require(_within(small[:, layout.I_MARK], 0, len(image.marks)), "a node has a mark that is not there")
    rank, right = small[:, layout.I_RANK], small[:, layout.I_RIGHT]
    below = right >= 0
    ranked = _within(rank, 1, _HIGHEST + 1) and (rank[below] == rank[right[below]] + 1).all()
    require(ranked, "the ranks of nodes of the match graph are not those of a heap")
    require((small[:, layout.I_REST] == layout.BOTTOM).all(), "a node of a heap continues like one of a list")


def _check_lists(image: Image) -> None:
    """Lists: each node is the top of a tree of earlier nodes, and knows its content."""
    nodes = image.nodes[layout.BOTTOM + 1 :]
    small, everything = nodes.view(np.int32), image.nodes.view(np.int32)
    child, left, right, rest = (small[:, k] for k in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST))
    numbers = np.arange(1, len(image.nodes))
    ends = (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST)
    alone = everything[layout.BOTTOM, list(ends)].tolist() == [-1, -1, -1, 0]
    require(alone, "the node of the complex event without events continues")
    for target in (child, left, right, rest):
        require(((target >= -1) & (target < numbers)).all(), "a node of the match graph points to no older one")
    for target in (left, right, rest):
        require((target != layout.BOTTOM).all(), "a list of the match graph goes on with what is not a part")
    require(_within(small[:, layout.I_MARK], 0, len(image.marks)), "a node has a mark that is not there")
    nothing = (child == layout.BOTTOM) & (small[:, layout.I_MARK] == layout.NO_MARK)
    require(not nothing.any(), "a part of the match graph has neither a mark nor parts")
    whole = left >= 0
    behind = np.where(whole, everything[left, layout.I_REST], -1)
    require((right == behind).all(), "a tree of the match graph does not have its second half")
    after = np.where(right >= 0, everything[right, layout.I_REST], -1)
    require((rest[whole] == after[whole]).all(), "a list of the match graph does not go on after its first tree")
    rank = small[:, layout.I_RANK]
    require(_within(rank, 1, _HIGHEST + 1), "the ranks of nodes of the match graph are not those of trees")
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


def check_partition_images(image: Image, tables: TransducerTables, events: int) -> None:
    """A query without PARTITION BY has one partition; a partition has counted at most as many events as came."""
    require(tables.partitioned or len(image.moved) == 1, "a query without PARTITION BY has several partitions")
    require(len(image.partition_long) == len(image.moved), "there are partitions without a key")
    require(_within(image.moved, 0, 2), "a partition has neither moved on nor stayed")
    if tables.partitioned:
        require(
            _within(image.partition_long[:, layout.PARTITION_EVENTS], 0, events + 1),
            "a partition counts more events than came",
        )


def check_configurations(image: Image, tables: TransducerTables) -> None:
    """Configurations are ordered by partition and group, and have a root; only sets of several have several members."""
    configs, states = image.configs, tables.transducer.states
    for name in ("config_long", "values"):
        require(len(getattr(image, name)) == len(configs), "there are configurations without registers")
    group, partition = configs[:, GROUP], configs[:, PARTITION].astype(np.int64)
    groups = states + 1 if tables.grouped else states
    require(_within(group, 0, groups), "a configuration is in a state that the query does not have")
    require(_within(partition, 0, len(image.moved)), "a configuration is of a partition that is not there")
    place = partition * (states + 1) + group
    require((place[1:] >= place[:-1]).all(), "the configurations are not in order")
    require(_within(configs[:, ROOT], 0, len(image.nodes)), "a configuration has a root that is not there")
    several = group == states
    require((configs[~several, COUNT] == 1).all(), "a configuration of one member has several")
    require((configs[several, COUNT] >= 2).all(), "a configuration of several members has one")
    if not tables.detecting:
        starts = image.nodes[configs[:, ROOT], layout.W_MEASURE]
        require((image.config_long[:, START] == starts).all(), "a configuration does not begin where its root does")


def check_classes(image: Image, tables: TransducerTables) -> None:
    """Classes are numbered without gaps, partition by partition; only strategies have classes."""
    own, partition = image.configs[:, CLASS], image.configs[:, PARTITION]
    require(_within(own, 0, len(own) + 1), "a configuration has a class that is not there")
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


def check_members(image: Image, tables: TransducerTables) -> None:
    """Sets of several members have them in the order of state and registers, each once."""
    several = image.configs[:, GROUP] == tables.transducer.states
    counts = image.configs[several, COUNT].astype(np.int64)
    members, values = image.members, image.member_values
    require(int(counts.sum()) == len(members) == len(values), "configurations do not have the members that are there")
    require(_within(members, 0, tables.transducer.states), "a member is in a state that the query does not have")
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


def check_collections(image: Image, tables: TransducerTables, known: int) -> None:
    """Registers hold collections that are there, of whole rows; nothing else is a collection."""
    sizes = image.set_sizes
    require(len(sizes) and sizes[0] == 0, "the empty collection is missing")
    require((sizes >= 0).all() and (sizes <= len(image.set_words)).all(), "a collection has an impossible size")
    require(int(sizes.sum()) == len(image.set_words), "collections do not have the words that are there")
    for array, rows, slot, register in set_holders(image, tables):
        numbers, fields = array[rows, slot], tables.transducer.registers[register].fields
        require(_within(numbers, 0, len(sizes)), "a register holds a collection that is not there")
        require((sizes[numbers] % fields == 0).all(), "a collection does not have whole rows")
        _check_rows(image, tables, numbers, register, known)
    require((set_widths(image, tables)[1:] > 0).all(), "there is a collection that no register holds")


def _check_rows(image: Image, tables: TransducerTables, numbers: Ints, register: int, known: int) -> None:
    """Strings in the rows of a register's collections are codes of known strings."""
    fields = [f for f, kind in enumerate(tables.kinds[register]) if kind.coded]
    if not fields:
        return
    starts = np.cumsum(image.set_sizes) - image.set_sizes
    for number in np.unique(numbers).tolist():
        size = int(image.set_sizes[number])
        rows = image.set_words[starts[number] : starts[number] + size].reshape(-1, len(tables.kinds[register]))
        require(_are_codes(rows[:, fields], known), "a collection holds a string that is not there")


def check_codes(image: Image, tables: TransducerTables, known: int) -> None:
    """Registers and keys of strings hold codes of known strings."""
    for q, slots in enumerate(tables.string_slots):
        rows, members = image.configs[:, GROUP] == q, image.members == q
        for words in (image.values[rows][:, slots], image.member_values[members][:, slots]):
            require(_are_codes(words, known), "a register holds a string that is not there")
    keys = [1 + k for k, kind in enumerate(tables.key_kinds) if kind.coded]
    require(_are_codes(image.partition_long[:, keys], known), "a partition has a key that is not there")


def check_strings(texts: object, tables: TransducerTables) -> None:
    """The strings are texts, each once, and those of the query come first."""
    require(isinstance(texts, list) and all(type(text) is str for text in texts), "its strings are not a list of texts")
    assert isinstance(texts, list)
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
