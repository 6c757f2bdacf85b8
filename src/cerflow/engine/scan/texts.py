"""The entries of a column of text: which texts they are, their classes by the tests of text, their codes as strings.

In a dictionary an entry is an index, and what is known of it lasts as long as batches have the same dictionary. Other
texts get entries in a hash table that kernels fill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Bytes, IntRows, Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, values_taken, with_each_text_once
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.events.text_tests import TextColumn
from cerflow.engine.kernels.table import has_twice
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout

_UNKNOWN = -1
#: Where kernels read the address of each array.
_WORDS = {
    "codes": layout.T_CODES,
    "classes": layout.T_CLASSES,
    "truth_values": layout.T_TRUTHS,
    "guards": layout.T_GUARDS,
    "singled": layout.T_SINGLED,
    "slots": layout.T_SLOTS,
    "places": layout.T_ENTRIES,
    "kept": layout.T_KEPT,
    "aside": layout.T_ASIDE,
}
#: Texts hardly repeat if of ``_ASKED`` rows or more one in ``_HARDLY`` has a new one.
_HARDLY, _ASKED = 8, 1 << 10
#: The whole dictionary gets codes if it has at most so many times as many texts as events need some at once.
_WHOLE = 8
#: The first numbers of entries and bytes, and the factor by which they grow, entries only up to ``_MANY_ENTRIES``.
_ENTRIES, _BYTES, _LARGER, _MANY_ENTRIES = 256, 4096, 16, 1 << 16


def _seen(words: Any) -> memoryview:
    """Words as Python reads them one by one."""
    return memoryview(words)


class TextEntries:
    """The entries of one column; ``words`` is its row in `ScanArrays.texts`, which this keeps up to date."""

    _codes: Ints
    _classes: Ints
    _guards: Bytes
    _slots: IntRows
    _places: IntRows
    _kept: Bytes
    _aside: Bytes

    def __init__(
        self,
        words: Ints,
        column: TextColumn | None,
        truths: Sequence[tuple[int, int]],
        strings: Strings,
        guards_left: Callable[[frozenset[int]], int] | None,
        last: int,
    ) -> None:
        """``truths`` are the tests of the column that say whether conditions are true, and whether they are false.

        ``guards_left`` gives the guards that a text leaves possible, by the tests of the column that hold (see
        `Guards`); ``last`` are those with which a match may end.
        """
        self._words = words
        self._seen = _seen(words)
        self._column = column
        self._truths = truths
        self._truth_values: Ints = np.zeros(0, np.int64)
        self._strings = strings
        self._guards_left = guards_left
        self._last = last
        #: The guards that the texts of each class leave possible.
        self._left: list[int] = []
        self._dictionary: pa.Array | None = None
        self._bytes = _BYTES
        self._begin(_ENTRIES)

    def fresh(self, words: Ints, strings: Strings) -> TextEntries:
        """The same entries for a recogniser with its own ``words``, a copy of these, and ``strings``."""
        other = copy(self)
        other._words, other._seen, other._strings = words, _seen(words), strings
        other._left, other._texts, other._arrays = list(self._left), list(self._texts), list(self._arrays)
        other._show(**{name: getattr(self, "_" + name).copy() for name in _WORDS if hasattr(self, "_" + name)})
        other.forget_codes()
        return other

    # -- room ----------------------------------------------------------------------------------------------------

    def _begin(self, entries: int, dictionary: pa.Array | None = None) -> None:
        """Begin again with null and the texts of a dictionary, and room for this many entries."""
        words = self._words
        #: The texts of the hash table, of which arrays have those that are None, from some entries on; those of a
        #: dictionary are read where they are wanted.
        self._texts: list[str | None] = [None]
        self._arrays: list[tuple[int, pa.Array]] = []
        codes = np.full(entries, _UNKNOWN, np.int64)
        codes[0] = NULL
        self._show(codes=codes, classes=np.full(entries, _UNKNOWN if self._column is not None else 0, np.int64))
        words[layout.T_ROOM], words[layout.T_COUNT] = entries, 1 if dictionary is None else 1 + len(dictionary)
        if self._guards_left is not None:
            self._show(guards=np.zeros(entries, np.uint8))
            words[layout.T_SINGLES] = -1
        if words[layout.T_LAYOUT] >= layout.TEXT32:
            slots = np.zeros((2 * entries, layout.SLOT_WORDS), np.int64)
            self._show(slots=slots, places=np.zeros((entries, 2), np.int64), kept=np.zeros(self._bytes, np.uint8))
            words[layout.T_MASK] = len(slots) - 1
            words[layout.T_USED], words[layout.T_LIMIT] = 0, self._bytes
        if self._column is not None:
            self._judge(self._texts if dictionary is None else dictionary, null=dictionary is not None)

    def begin_again(self) -> None:
        """Forget all entries."""
        self._dictionary, self._words[layout.T_HELD] = None, -1
        self._begin(_ENTRIES)

    def _show(self, **arrays: NDArray[Any]) -> None:
        """Hold some arrays as attributes, and let kernels know where they are."""
        for name, array in arrays.items():
            setattr(self, "_" + name, array)
            self._words[_WORDS[name]] = pa.py_buffer(array).address

    def grow(self) -> None:
        """Make room after all entries are known; they are entered again when they are read again."""
        entries = int(self._words[layout.T_ROOM])
        # Bytes are lacking if there is room for as many texts again, or for a block where there is for no more.
        most = entries >= limits.SCAN_TEXTS and len(self._texts) + layout.BLOCK < entries
        if 2 * len(self._texts) < entries or most:
            self._bytes *= _LARGER
        else:
            # There must be room for all texts of a block, as it is read again from its beginning.
            larger = entries * (_LARGER if entries < _MANY_ENTRIES else 4)
            entries = max(min(larger, limits.SCAN_TEXTS), 4 * layout.BLOCK)
        self._begin(entries)

    # -- what is known -------------------------------------------------------------------------------------------

    def forget_codes(self) -> None:
        """Forget the codes, as strings have been forgotten or brought back."""
        self._codes[1:] = _UNKNOWN

    def set_layout(self, kind: int) -> None:
        """Take the entries from batches with this layout of texts, as in `ScanArrays.texts`."""
        if kind != self._words[layout.T_LAYOUT]:
            self._dictionary = None
            self._words[layout.T_LAYOUT], self._words[layout.T_HELD] = kind, -1
            self._begin(_ENTRIES)

    def use_dictionary(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the entries from the dictionary that the column has in a batch.

        Returns the batch with each text once in that dictionary, as kernels compare entries in place of texts.
        """
        child = int(self._words[layout.T_CHILD])
        dictionary = batch.column(child).dictionary
        if self._dictionary is None or not dictionary.equals(self._dictionary):
            self._dictionary, self._words[layout.T_HELD] = None, -1
            if _has_twice(dictionary):
                column = with_each_text_once(batch.column(child))
                batch = batch.set_column(child, batch.schema.field(child), column)
                dictionary = column.dictionary
            self._begin(1 + len(dictionary), dictionary)
        # As long as it is held, no other one is at its place.
        self._dictionary = dictionary
        places = [0 if buffer is None else buffer.address for buffer in dictionary.buffers()[:3]]
        self._words[layout.T_HELD : layout.T_HELD + layout.HELD_WORDS] = (len(dictionary), dictionary.offset, *places)
        return batch

    def learn(self, batch: pa.RecordBatch) -> None:
        """Read the texts of new entries, which come from this batch, and judge them."""
        known, count, waiting = len(self._texts), self._seen[layout.T_COUNT], self._seen[layout.T_WAITING]
        if (known == count and not waiting) or self._dictionary is not None:
            return
        column = batch.column(int(self._words[layout.T_CHILD]))
        if waiting:
            self._judge_rows(column, waiting)
        rows = self._places[known:count, 1]
        if len(rows) <= limits.ENCODED_TEXTS:
            self._texts += [column[row].as_py() for row in rows.tolist()]
        else:
            self._arrays.append((known, values_taken(column, rows)))
            self._texts += [None] * len(rows)
        if self._column is not None:
            self._judge(self._texts[known:] if len(rows) <= limits.ENCODED_TEXTS else self._arrays[-1][1], known)

        # Programs ask for the truths of entries.
        wanted = self._guards_left is not None and not self._truths
        if wanted and _HARDLY * len(rows) > self._seen[layout.T_ASKED] >= _ASKED:
            self._show(aside=np.zeros(layout.SET_ASIDE, np.uint8))

    def _judge_rows(self, column: pa.Array, count: int) -> None:
        """Find the guards of ``count`` rows of a ``column``, whose texts are not entered."""
        assert self._column is not None
        begin, some = self._seen[layout.T_FROM], np.flatnonzero(self._aside[:count])
        classes = self._column.classes_of_many(values_taken(column, begin + some))
        self._aside[some] = np.array(self._guards_of_classes(), np.uint8)[classes]
        self._words[layout.T_WAITING], self._words[layout.T_TO] = 0, begin + count

    def _judge(self, texts: Sequence[str | None] | pa.Array, begin: int = 0, *, null: bool = False) -> None:
        """Find the classes of the entries from this one on, which have these texts, and ``null`` before them."""
        assert self._column is not None
        if isinstance(texts, pa.Array) and len(texts) <= limits.ENCODED_TEXTS:
            texts = texts.to_pylist()
        before = [None] if null else []
        end, column = begin + len(before) + len(texts), self._column
        if isinstance(texts, pa.Array):
            known = column.classes_of(before)
            classes = np.concatenate([[known[text] for text in before], column.classes_of_many(texts)]).astype(np.int64)
        else:
            known = column.classes_of([*before, *texts])
            classes = np.array([known[text] for text in (*before, *texts)], np.int64)
        self._classes[begin:end] = classes
        if self._guards_left is not None:
            self._guards[begin:end] = np.array(self._guards_of_classes(), np.uint8)[classes]
        self._words[layout.T_JUDGED] = end
        if begin == 0:
            self._single_out()
        if len(self._truth_values) < len(self._column.satisfied) * len(self._truths):
            values = [
                1 if true in satisfied else 0 if false in satisfied else NULL
                for satisfied in list(self._column.satisfied)
                for true, false in self._truths
            ]
            self._show(truth_values=np.array(values, np.int64))
            self._words[layout.T_WIDTH] = len(self._truths)

    def _single_out(self) -> None:
        """Find the few texts that leave other guards possible than all others, if it is known that these are few."""
        words, column = self._words, self._column
        words[layout.T_SINGLES] = words[layout.T_OPEN] = words[layout.T_LENGTHS] = -1
        if self._guards_left is None or column is None:
            return
        if words[layout.T_LAYOUT] < layout.TEXT32:
            words[layout.T_OPEN] = int(np.bitwise_or.reduce(self._guards))
            # An index beyond the dictionary counts as null.
            others = int(self._guards[0])
            singles = [(int(k) - 1, int(self._guards[k]), 0, 0) for k in np.flatnonzero(self._guards != others)]
        elif column.compared is None:
            return
        else:
            texts = [*column.compared, "".join(column.compared) + "\n"]
            *left, others = self._guards_of(texts)
            if not others & self._last:
                ending = {min(len(text.encode()), 63) for text, guards in zip(texts, left) if guards & self._last}
                words[layout.T_LENGTHS] = np.uint64(sum(1 << length for length in ending)).view(np.int64)
            singles = self._of_texts([(text.encode(), guards) for text, guards in zip(texts, left) if guards != others])
        # Each has a key of its own, and no index is -1, and no key.
        indexed = words[layout.T_LAYOUT] < layout.TEXT32
        if len(singles) <= layout.SINGLES and len({key for key, *_ in singles if key or indexed}) == len(singles):
            # There is always one more, for null.
            more = [(-1, self._guards_of([None])[0], 0, 0)] * (layout.SINGLES + 4 - len(singles))
            self._show(singled=np.array([*singles, *more], np.int64))
            words[layout.T_SINGLES], words[layout.T_OTHERS] = len(singles), others

    def _of_texts(self, some: Sequence[tuple[bytes, int]]) -> list[tuple[int, int, int, int]]:
        """The words of texts and their guards, see `layout.ST_KEY`."""
        self._letters = np.frombuffer(b"".join(text for text, _ in some) + bytes(8), np.uint8)
        at, found = pa.py_buffer(self._letters).address, []
        for text, guards in some:
            found.append((_key(text), guards, at, len(text)))
            at += len(text)
        return found

    def _guards_of(self, texts: Sequence[str | None]) -> list[int]:
        """The guards that texts leave possible."""
        assert self._column is not None
        assert self._guards_left is not None
        known = self._column.classes_of(texts)
        left = self._guards_of_classes()
        return [left[known[text]] for text in texts]

    def _guards_of_classes(self) -> list[int]:
        """The guards that the texts of each class leave possible."""
        assert self._column is not None
        assert self._guards_left is not None
        self._left += map(self._guards_left, self._column.satisfied[len(self._left) :])
        return self._left

    def code(self, entry: int) -> int:
        """The code of an entry among the strings of the recogniser."""
        if self._dictionary is None:
            text = self._texts[entry] or self._texts_of([entry])[0].as_py()
        else:
            text = self._dictionary[entry - 1].as_py()
        self._codes[entry] = code = self._strings.code(text)
        return code

    def codes(self, entries: Ints) -> Ints:
        """The codes of entries among the strings of the recogniser; none is null."""
        dictionary = self._dictionary
        if dictionary is not None and len(dictionary) <= _WHOLE * len(entries) and not dictionary.null_count:
            # Cheaper than to find out which are wanted, now and for the next events.
            self._codes[1:] = self._strings.codes_of(dictionary)
        else:
            some = np.unique(entries)
            texts = self._texts_of(some) if dictionary is None else dictionary.take(array_of_numbers(some - 1))
            self._codes[some] = self._strings.codes_of(texts)
        return self._codes[entries]

    def _texts_of(self, entries: Ints | list[int]) -> pa.Array:
        """The texts of entries of the hash table, which ascend; the time does not depend on how many others it has."""
        some = np.asarray(entries)
        chunks, at = list[pa.Array](), 0
        for begin, array in self._arrays:
            first, end = np.searchsorted(some, [begin, begin + len(array)]).tolist()
            if first < end:
                alone = array_of_texts([self._texts[entry] for entry in some[at:first].tolist()])
                chunks += alone, values_taken(array, some[first:end] - begin).cast(pa.string())
                at = end
        alone = array_of_texts([self._texts[entry] for entry in some[at:].tolist()])
        return pa.chunked_array([*chunks, alone]).combine_chunks()


def _key(text: bytes) -> int:
    """The key of a text, see `layout.SHORT`."""
    if len(text) < layout.SHORT:
        return int.from_bytes(text.rjust(8, b"\0"), "little", signed=True) | len(text)
    head, tail = int.from_bytes(text[:8], "little"), int.from_bytes(text[-8:], "little")
    key = (head * layout.MIX + (tail + len(text)) * layout.MORE) & ~0xFF & (1 << 64) - 1 | layout.SHORT
    return key - (key >> 63 << 64)


def _has_twice(texts: pa.Array) -> bool:
    """Whether a text comes twice."""
    if texts.null_count or texts.type not in (pa.string(), pa.large_string()):
        return len(texts.unique()) < len(texts)
    wide, (_, offsets, letters) = pa.types.is_large_string(texts.type), texts.buffers()
    if letters is None or not len(texts):
        return len(texts) > 1
    slots = np.full(2 << (len(texts) - 1).bit_length(), -1, np.int32)
    at = offsets.address + texts.offset * (8 if wide else 4)
    return bool(has_twice(letters.address, letters.size, at, wide, len(texts), slots))
