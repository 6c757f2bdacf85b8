"""Relevance by text: finds the events that may be relevant by their texts, mainly their types.

Tests that read one column of text are evaluated once for each distinct text. Their results together give each event a
class. There are few classes, and in most of them no transition can fire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.language.condition import And, Attribute, Comparison, Condition, In, Literal, Not, Or
from cerflow.language.node import nested_operands
from cerflow.logic.conditions.guards import Satisfied, TypeTest


class TextColumn:
    """The tests of one column of text, and the classes of texts that they tell apart."""

    def __init__(self, name: str, tests: Mapping[int, Condition], schema: Schema, unit: str) -> None:
        self.name = name
        self.tests = tests
        self.schema = schema
        self.unit = unit
        #: The tests that hold in each class.
        self.satisfied: list[frozenset[int]] = []
        self._classes: dict[frozenset[int], int] = {}
        self._of_text: dict[str | None, int] = {}
        self._lock = Lock()

    @cached_property
    def compared(self) -> frozenset[str] | None:
        """The texts to which tests compare, so that all other texts are alike. None if tests do anything else."""
        found: set[str] = set()
        for leaf in chain(*(nested_operands(test, And | Or | Not | Satisfied) for test in self.tests.values())):
            match leaf:
                case TypeTest(text, None):
                    found.add(text)
                case Comparison(Operator.EQ | Operator.NE, Attribute(), Literal(str(text))):
                    found.add(text)
                case In(Attribute(), items) if all(isinstance(item.value, str) for item in items):
                    found.update(str(item.value) for item in items)
                case _:
                    return None
        return frozenset(found)

    def of(self, text: str | None) -> int:
        """The class of one text."""
        found = self._of_text.get(text)
        return self.classes_of([text])[text] if found is None else found

    def classes_of(self, texts: Sequence[str | None]) -> Mapping[str | None, int]:
        """The classes of texts, among them these."""
        known = self._of_text
        unseen = [text for text in texts if text not in known]
        if not unseen:
            return known
        with self._lock:
            known = self._of_text
            if len(known) > limits.TESTED_TEXTS:
                # The old table may still be in use.
                known = self._of_text = {}
                unseen = list(texts)
            unseen = [text for text in unseen if text not in known]
            if self.compared is None:
                self._judge(unseen, known)
            else:
                of_compared, of_others = self._of_compared
                known.update((text, of_compared.get(text, of_others)) for text in unseen)
        return known

    def classes_of_many(self, texts: pa.Array) -> Ints:
        """The class of each of many texts, which are not remembered."""
        if self.compared is not None:
            of_compared, of_others = self._of_compared
            some = [text for text in of_compared if text is not None]
            at = pc.index_in(texts, value_set=array_of_texts(some).cast(texts.type))
            known = np.array([*(of_compared[text] for text in some), of_others], np.int64)
            classes: Ints = known[numbers_of(at, len(some))]
            return classes
        # The texts differ, so none has to be looked up.
        each = array_of_numbers(np.arange(len(texts), dtype=np.int32))
        rows = self._rows(texts if texts.null_count else pa.DictionaryArray.from_arrays(each, texts))
        classes = np.zeros(len(texts), np.int64)
        # Each test tells texts of some classes apart; there are few classes.
        satisfied = [frozenset[int]()]
        for number, test in self.tests.items():
            split = 2 * classes + np.broadcast_to(rows.truth(test).true, (len(texts),))
            left = np.flatnonzero(np.bincount(split)).tolist()
            renumbered = np.zeros(2 * len(satisfied), np.int64)
            renumbered[left] = range(len(left))
            satisfied = [satisfied[k >> 1] | {number} if k & 1 else satisfied[k >> 1] for k in left]
            classes = renumbered[split]
        with self._lock:
            known = np.array([*map(self._class_of, satisfied)], np.int64)
        return known[classes]

    @cached_property
    def _of_compared(self) -> tuple[dict[str | None, int], int]:
        """The classes of null and of the texts to which tests compare, and the class of all others."""
        assert self.compared is not None
        other = "".join(self.compared) + "\n"
        found: dict[str | None, int] = {}
        self._judge([None, *self.compared, other], found)
        return found, found.pop(other)

    def _judge(self, texts: Sequence[str | None], known: dict[str | None, int]) -> None:
        for text, satisfied in zip(texts, self._rows(array_of_texts(texts)).held(self.tests.items())):
            known[text] = self._class_of(satisfied)

    def _rows(self, texts: pa.Array) -> BatchRows:
        batch = pa.RecordBatch.from_arrays([texts], names=[self.name])
        return BatchRows(batch, self.schema, np.zeros(len(texts), np.int64), self.unit)

    def _class_of(self, satisfied: frozenset[int]) -> int:
        if satisfied not in self._classes:
            self.satisfied.append(satisfied)
            self._classes[satisfied] = len(self.satisfied) - 1
        return self._classes[satisfied]


class TextTests:
    """Tests of text, by the column that they read, numbered by the caller.

    Several recognisers may share it, even in several threads.
    """

    def __init__(self, tests: Mapping[str, Mapping[int, Condition]], schema: Schema, unit: str) -> None:
        self.columns = [TextColumn(name, some, schema, unit) for name, some in tests.items()]
        names = [column.name for column in self.columns]
        #: The texts of an event: of the only column, or of several.
        self._texts_of: Callable[[Mapping[str, object]], Any] = itemgetter(*names) if names else lambda _: ()
        self._joint: dict[object, frozenset[int]] = {}

    def of(self, event: Mapping[str, object]) -> frozenset[int]:
        """The tests that hold for one event, which has the columns (texts as strings, or None)."""
        texts = self._texts_of(event)
        found = self._joint.get(texts)
        if found is None:
            each = (texts,) if len(self.columns) == 1 else texts
            parts = [column.satisfied[column.of(text)] for column, text in zip(self.columns, each)]
            if len(self._joint) > limits.TESTED_TEXTS:
                self._joint = {}
            found = self._joint[texts] = frozenset().union(*parts)
        return found
