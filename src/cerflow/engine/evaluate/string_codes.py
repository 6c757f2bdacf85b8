"""Strings as numbers: codes that stay the same from batch to batch, and ranks for their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of

#: Arrow looks up the strings of an array, unless more than this many times as many are known.
_MANY = 8


class Strings:
    """A table of strings; each has a code, given in order of appearance.

    Many strings of an array get codes without becoming strings of Python, which they become when they are asked for.
    """

    #: See `cerflow.engine.recognize.transaction`; strings that were added in a push that failed may remain.
    changes = ("_texts", "known", "_later", "_limit", "_ranks")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.replace(list(texts))

    @property
    def wants_cleaning(self) -> bool:
        """Whether the strings in use should `replace` the table."""
        return len(self) > self._limit

    def replace(self, texts: Sequence[str]) -> None:
        """Start again with these strings; their codes are their indexes."""
        self._texts: list[str] = []
        #: The codes by string, but for those of later arrays; another object once codes have changed.
        self.known: dict[str, int] = {}
        self._later: list[pa.Array] = []
        self._ranks: Ints = np.zeros(0, np.int64)
        self.codes(texts)
        self.settle()

    def settle(self) -> None:
        """Have the present strings for those that are in use: clean once there are many more."""
        self._limit = 2 * len(self) + limits.STRING_SLACK

    def __len__(self) -> int:
        return len(self._texts) + sum(map(len, self._later))

    @property
    def texts(self) -> list[str]:
        """The strings, by code."""
        while self._later:
            new = self._later[0].to_pylist()
            codes = dict(zip(new, range(len(self._texts), len(self._texts) + len(new))))
            # Without a call in between, no signal parts them.
            self._texts += new
            self.known |= codes
            del self._later[0]
        return self._texts

    def code(self, text: str) -> int:
        """The code of a string."""
        texts = self.texts
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = len(texts)
            texts.append(text)
        return found

    def codes(self, texts: Sequence[str]) -> Ints:
        """The codes of many strings."""
        own, known = self.texts, self.known
        new = dict.fromkeys(text for text in texts if text not in known)
        found = dict(zip(new, range(len(own), len(own) + len(new))))
        own += new
        known |= found
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))

    def codes_of(self, texts: pa.Array) -> Ints:
        """The codes of different strings in an array."""
        count = len(self)
        if len(texts) < limits.ENCODED_TEXTS or _MANY * len(texts) < count:
            return self.codes(texts.to_pylist())
        texts = texts.cast(pa.large_string())
        known = pa.chunked_array([array_of_texts(self._texts).cast(pa.large_string()), *self._later])
        found = numbers_of(pc.index_in(texts, value_set=known.combine_chunks()), -1).astype(np.int64)
        new = np.flatnonzero(found < 0)
        if len(new):
            found[new] = np.arange(count, count + len(new))
            self._later.append(texts.take(array_of_numbers(new)))
        return found

    def ranks(self) -> Ints:
        """For each code, the rank of its string in the order of all strings so far."""
        if len(self._ranks) != len(self):
            self._ranks = ranks_of(self.texts)
        return self._ranks


def ranks_of(texts: Sequence[str]) -> Ints:
    """The place of each of some texts in their order."""
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks
