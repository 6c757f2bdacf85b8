"""Strings that conditions can tell apart: one of every sort, found by running small automata side by side.

Comparisons with constants, LIKE and the length of a string are all recognised by reading it character by character.
So the product of their automata, searched from the empty string on, tells exactly which combinations of outcomes
there are, each with a shortest string.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from cerflow import limits
from cerflow.values.text_patterns import MANY, tokens

__all__ = ["ComparedWith", "Equal", "Length", "Pattern", "StringAutomaton", "fresh_word", "sorts_of_strings"]

#: Characters that are taken before others.
_READABLE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:;/+*#!?"
_LAST = 0x10FFFF
#: Code points that no string may hold by themselves.
_SURROGATES = range(0xD800, 0xE000)


class StringAutomaton(Protocol):
    """A deterministic automaton over characters."""

    def start(self) -> Hashable:
        """The state before anything is read."""

    def step(self, state: Hashable, character: str) -> Hashable:
        """The state after one more character."""

    def outcome(self, state: Hashable) -> Hashable:
        """The outcome for a string that ends here."""

    def characters(self) -> Iterable[str]:
        """The characters that it distinguishes."""


@dataclass(frozen=True)
class Equal:
    """Whether the string is a constant."""

    constant: str

    def start(self) -> int:
        """Nothing is read; a state counts the characters that agree."""
        return 0

    def step(self, state: Hashable, character: str) -> int:
        """One character further, or -1 for good."""
        assert isinstance(state, int)
        agrees = 0 <= state < len(self.constant) and self.constant[state] == character
        return state + 1 if agrees else -1

    def outcome(self, state: Hashable) -> bool:
        """Whether all characters agree."""
        return state == len(self.constant)

    def characters(self) -> str:
        """The characters of the constant."""
        return self.constant


@dataclass(frozen=True)
class ComparedWith:
    """Whether the string is less than, equal to or greater than a constant, by code points."""

    constant: str

    def start(self) -> int:
        """Nothing is read; a state counts the characters that agree."""
        return 0

    def step(self, state: Hashable, character: str) -> int:
        """One character further, or -1 for less and -2 for greater."""
        assert isinstance(state, int)
        if state < 0:
            return state
        if state == len(self.constant) or character > self.constant[state]:
            return -2
        return state + 1 if character == self.constant[state] else -1

    def outcome(self, state: Hashable) -> int:
        """-1, 0 or 1, as the string is less, equal or greater."""
        assert isinstance(state, int)
        if state == len(self.constant):
            return 0
        return 1 if state == -2 else -1

    def characters(self) -> str:
        """The characters of the constant."""
        return self.constant


@dataclass(frozen=True)
class Pattern:
    """Whether the string is LIKE a pattern.

    ``wanted`` are the characters that it asks for, None for any one. Any others may stand before those whose number
    is in ``free``, and behind the last one if the number after it is.
    """

    pattern: str
    wanted: tuple[str | None, ...] = field(init=False)
    free: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        wanted: list[str | None] = []
        free: set[int] = set()
        for token in tokens(self.pattern):
            if token is MANY:
                free.add(len(wanted))
            else:
                wanted.extend(token if isinstance(token, str) else [None])
        object.__setattr__(self, "wanted", tuple(wanted))
        object.__setattr__(self, "free", frozenset(free))

    def start(self) -> frozenset[int]:
        """How many of the characters asked for may have been read."""
        return frozenset((0,))

    def step(self, state: Hashable, character: str) -> frozenset[int]:
        """How many may have been read after one more character."""
        assert isinstance(state, frozenset)
        read = (k + 1 for k in state if k < len(self.wanted) and self.wanted[k] in (None, character))
        return frozenset((*(state & self.free), *read))

    def outcome(self, state: Hashable) -> bool:
        """Whether all may have been read."""
        assert isinstance(state, frozenset)
        return len(self.wanted) in state

    def characters(self) -> str:
        """The characters that stand for themselves."""
        return "".join(c for c in self.wanted if c is not None)


@dataclass(frozen=True)
class Length:
    """How long the string is, up to a limit."""

    limit: int

    def start(self) -> int:
        """Nothing is read."""
        return 0

    def step(self, state: Hashable, _: str) -> int:
        """One more, up to one beyond the limit."""
        assert isinstance(state, int)
        return min(state + 1, self.limit + 1)

    def outcome(self, state: Hashable) -> Hashable:
        """The length, as far as it was counted."""
        return state

    def characters(self) -> str:
        """It distinguishes no characters."""
        return ""


def sorts_of_strings(readers: Sequence[StringAutomaton], avoid: Iterable[str] = ()) -> tuple[list[str], bool]:
    """A string for every combination of outcomes, and whether none is missing.

    ``avoid`` are words not to use for a string without any condition.
    """
    if all(isinstance(reader, Equal) for reader in readers):
        constants = [reader.constant for reader in readers if isinstance(reader, Equal)]
        return [fresh_word({*constants, *avoid}), *dict.fromkeys(constants)], True
    alphabet = _representatives(
        {c for reader in readers for c in reader.characters()}, any(isinstance(r, ComparedWith) for r in readers)
    )
    start = tuple(reader.start() for reader in readers)
    found: dict[tuple[Hashable, ...], str] = {}
    reached = {start}
    pending = deque([(start, "")])
    complete = True
    while pending and complete:
        states, text = pending.popleft()
        for character in alphabet:
            after = tuple(reader.step(state, character) for reader, state in zip(readers, states))
            if after in reached:
                continue
            if len(reached) >= limits.STRING_STATES:
                complete = False
                break
            reached.add(after)
            longer = text + character
            found.setdefault(tuple(reader.outcome(state) for reader, state in zip(readers, after)), longer)
            pending.append((after, longer))
    # The empty string comes last, because it reads oddly in an example.
    found.setdefault(tuple(reader.outcome(state) for reader, state in zip(readers, start)), "")
    return list(found.values()), complete


def fresh_word(avoid: Iterable[str]) -> str:
    """A word that is none of these."""
    taken = set(avoid)
    return next(word for k in count() if (word := f"other{k or ''}") not in taken)


def _representatives(known: set[str], ordered: bool) -> list[str]:
    """Characters that stand for all: those known, and one for every gap between them if order counts."""
    if not ordered:
        return [*sorted(known, key=_liking), _some(0, _LAST, known)]
    points = sorted(map(ord, known))
    gaps = zip([-1, *points], [*points, _LAST + 1])
    between = [_some(low + 1, high - 1, known) for low, high in gaps]
    return sorted({*known, *(c for c in between if c)}, key=_liking)


def _some(low: int, high: int, known: set[str]) -> str:
    """A character between two code points (both included) that is not known, the empty string if there is none."""
    for character in _READABLE:
        if low <= ord(character) <= high and character not in known:
            return character
    places = (p for p in range(low, high + 1) if p not in _SURROGATES and chr(p) not in known)
    return next(map(chr, places), "")


def _liking(character: str) -> tuple[int, str]:
    place = _READABLE.find(character)
    return (place if place >= 0 else len(_READABLE), character)
