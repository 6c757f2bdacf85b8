"""Strings as numbers: codes that stay the same from batch to batch, and ranks for their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import Ints


class Strings:
    """A table of strings; each has a code, given in order of appearance."""

    #: See `cerflow.engine.recognize.transaction`; strings that were added in a push that failed may remain.
    changes = ("texts", "_codes", "_limit", "_ranks")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.replace(list(texts))

    @property
    def wants_cleaning(self) -> bool:
        """Whether the strings in use should `replace` the table."""
        return len(self.texts) > self._limit

    def replace(self, texts: Sequence[str]) -> None:
        """Start again with these strings; their codes are their indexes."""
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._ranks: Ints = np.zeros(0, np.int64)
        self.codes(texts)
        self.settle()

    def settle(self) -> None:
        """Have the present strings for those that are in use: clean once there are many more."""
        self._limit = 2 * len(self.texts) + limits.STRING_SLACK

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """The code of a string."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

    def codes(self, texts: Sequence[str]) -> Ints:
        """The codes of many strings."""
        known = self._codes
        new = dict.fromkeys(text for text in texts if text not in known)
        known.update(zip(new, range(len(self.texts), len(self.texts) + len(new))))
        self.texts += new
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))

    def ranks(self) -> Ints:
        """For each code, the rank of its string in the order of all strings so far."""
        if len(self._ranks) != len(self.texts):
            self._ranks = ranks_of(self.texts)
        return self._ranks


def ranks_of(texts: Sequence[str]) -> Ints:
    """The place of each of some texts in their order."""
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks
