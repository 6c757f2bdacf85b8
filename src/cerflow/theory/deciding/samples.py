"""Values of one attribute that represent all others, as far as conditions can distinguish them.

``many`` is the number of attributes that are compared with one another: that many values are taken between two
neighbouring constants, so that every order of them occurs. Strings are sorted by small automata, run in parallel:
comparisons with constants, LIKE and the length of a string are all recognised by reading it character by character. The
search from the empty string finds which combinations of outcomes there are, each with a shortest string.
"""

from __future__ import annotations

import datetime
import math
import struct
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, pairwise

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.events import microseconds_since_epoch, moment_at, parsed_moment
from cerflow.base.graphs import reached
from cerflow.base.text_patterns import MANY, tokens
from cerflow.base.units import DAY, MICROSECONDS
from cerflow.language.lexicon import LARGEST_INTEGER

#: The first and last moments there are, in microseconds.
MOMENT_LIMITS = tuple(
    microseconds_since_epoch(datetime.datetime(*day, tzinfo=datetime.UTC)) for day in ((1, 1, 2), (9999, 12, 30))
)

# -- numbers and times --------------------------------------------------------------------------------------------


def floats(constants: Iterable[int | float], many: int) -> list[float]:
    """Floats: the constants, and between and beyond them."""
    points = sorted({float(c) + 0.0 for c in constants})
    found = set(points)
    for low, high in pairwise([None, *points, None]):
        found.update(_between(low, high, many))
    return sorted(found, key=_plainness)


def _between(low: float | None, high: float | None, many: int) -> list[float]:
    """``many`` floats between two (None: without a limit), or all there are; whole numbers if these are enough."""
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    # Below a constant those beside it are the plainest.
    start = math.ceil(most) - many if low is None and math.isfinite(most) else 0
    if math.isfinite(least):
        start = math.floor(least) + 1
    parts = (k / (many + 1) for k in range(1, many + 1))
    for candidates in (map(float, range(start, start + many)), (least * (1 - p) + most * p for p in parts)):
        found = sorted({f for f in candidates if least < f < most})
        if len(found) == many:
            return found
    first = place_of(least) + (low is not None)
    last = place_of(most) - (high is not None)
    # From a constant towards infinity.
    places = range(max(first, last - many + 1), last + 1) if low is None else range(first, min(first + many, last + 1))
    return list(map(float_at, places))


def place_of(value: float) -> int:
    """The place of a float among all floats, 0 for zero."""
    place: int = struct.unpack(">q", struct.pack(">d", abs(value)))[0]
    return place if value >= 0 else -place


def float_at(place: int) -> float:
    """The float at a place."""
    value: float = struct.unpack(">d", struct.pack(">q", abs(place)))[0]
    return value if place >= 0 else -value


def integers(constants: Iterable[int | float], many: int, low: int, high: int) -> list[int]:
    """Integers between two limits: at and around the places where comparisons with the constants change."""
    found: set[int] = set()
    for constant in constants:
        # An integer is rounded before it is compared with a float.
        exact = isinstance(constant, int)
        for place in [constant] if exact else [first_integer(low, high, constant, strict) for strict in (False, True)]:
            found.update(range(max(low, int(place) - many), min(high, int(place) + many) + 1))
    # Without a constant within the limits all integers are alike.
    return sorted(found or range(max(low, 0), min(high, max(low, 0) + many) + 1), key=_plainness)


def first_integer(low: int, high: int, constant: float, strict: bool) -> int:
    """The first integer that is at least the constant, with ``strict`` greater; ``high + 1`` if there is none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if float(middle) > constant or (not strict and float(middle) == constant):
            high = middle
        else:
            low = middle + 1
    return low


def candidate_moments(constants: Iterable[str], many: int, unit: int = 1) -> list[datetime.datetime]:
    """Moments that are multiples of a number of microseconds: at and around those that strings stand for."""
    places = [microseconds_since_epoch(parsed_moment(text)) // unit for text in constants]
    low, high = -(-MOMENT_LIMITS[0] // unit), MOMENT_LIMITS[1] // unit
    return [moment_at(place * unit) for place in sorted(integers(places or [_YEAR_2000 // unit], many + 1, low, high))]


_YEAR_2000 = 10_957 * DAY


def moment_unit(arrow: pa.DataType | None) -> int:
    """How many microseconds apart the moments of a column are at least."""
    if arrow is None or not pa.types.is_temporal(arrow):
        return 1
    return DAY if pa.types.is_date(arrow) else max(1, int(MICROSECONDS[arrow.unit]))


def whole_limits(arrow: pa.DataType | None) -> tuple[int, int]:
    """The least and the greatest whole number that a column can hold."""
    if arrow is not None and pa.types.is_decimal(arrow):
        most = 10 ** (arrow.precision - arrow.scale) - 1
        return -most, most
    if arrow is None or not pa.types.is_integer(arrow):
        return -LARGEST_INTEGER, LARGEST_INTEGER
    if pa.types.is_unsigned_integer(arrow):
        return 0, min(2**arrow.bit_width - 1, LARGEST_INTEGER)
    return max(-(2 ** (arrow.bit_width - 1)), -LARGEST_INTEGER), 2 ** (arrow.bit_width - 1) - 1


def _plainness(value: float) -> tuple[bool, bool, float]:
    """Small whole numbers first."""
    return (not float(value).is_integer(), value < 0, abs(value))


# -- strings ------------------------------------------------------------------------------------------------------

#: Characters that are taken before others.
_READABLE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:;/+*#!?"
#: Code points that no string may hold by themselves.
_SURROGATES = range(0xD800, 0xE000)
_State = frozenset[int]
_LESS, _GREATER = frozenset((-1,)), frozenset((-2,))


@dataclass(frozen=True)
class StringAutomaton:
    """A deterministic automaton over characters: how many of those ``wanted`` (None: any one) may have been read.

    Any others may stand before those whose number is in ``free``, and after the last one if the number after it is. It
    tells whether a string has all of them, an ``ordered`` one also whether another string is less or greater, and one
    that ``counts`` how many there are.
    """

    wanted: tuple[str | None, ...]
    free: frozenset[int] = frozenset()
    ordered: bool = False
    counts: bool = False

    @classmethod
    def like(cls, pattern: str) -> StringAutomaton:
        """Whether the string is LIKE a pattern."""
        wanted: list[str | None] = []
        free: set[int] = set()
        for token in tokens(pattern):
            if token is MANY:
                free.add(len(wanted))
            else:
                wanted.extend(token if isinstance(token, str) else [None])
        return cls(tuple(wanted), frozenset(free))

    @classmethod
    def length(cls, limit: float) -> StringAutomaton:
        """How long the string is, up to a limit; longer strings than 10,000 are not tried."""
        return cls((None,) * min(math.ceil(abs(limit)), 10_000), counts=True)

    @property
    def equal(self) -> str | None:
        """The string that it tells from all others, if that is all that it does."""
        same = not (self.free or self.ordered or self.counts or None in self.wanted)
        return "".join(c or "" for c in self.wanted) if same else None

    def step(self, state: _State, character: str) -> _State:
        """The state after one more character."""
        read = (k + 1 for k in state if 0 <= k < len(self.wanted) and self.wanted[k] in (None, character))
        after = frozenset((*(state & self.free), *read))
        if after or not self.ordered:
            return after
        (agrees,) = state
        if agrees < 0:
            return state
        return _GREATER if agrees == len(self.wanted) or character > str(self.wanted[agrees]) else _LESS

    def outcome(self, state: _State) -> Hashable:
        """What it tells of a string that ends here."""
        return state if self.counts else (len(self.wanted) in state, state == _GREATER)


def sorts_of_strings(readers: Sequence[StringAutomaton], avoid: Iterable[str] = ()) -> tuple[list[str], bool]:
    """A string for every combination of outcomes, and whether none is missing.

    ``avoid`` are words not to use for a string without any condition.
    """
    equal = [reader.equal for reader in readers]
    if None not in equal:
        constants = [text for text in equal if text is not None]
        return [fresh_word({*constants, *avoid}), *dict.fromkeys(constants)], True
    known = {c for reader in readers for c in reader.wanted if c is not None}
    alphabet = _representatives(known, any(reader.ordered for reader in readers))
    texts = {(frozenset((0,)),) * len(readers): ""}
    complete = True

    def following(states: tuple[_State, ...]) -> Iterator[tuple[_State, ...]]:
        nonlocal complete
        for character in alphabet if complete else ():
            after = tuple(reader.step(state, character) for reader, state in zip(readers, states))
            if after not in texts and len(texts) >= limits.STRING_STATES:
                complete = False
                break
            texts.setdefault(after, texts[states] + character)
            yield after

    # The empty string comes last, because it reads oddly in an example.
    empty, *others = reached([*texts], following)
    found: dict[tuple[Hashable, ...], str] = {}
    for states in (*others, empty):
        found.setdefault(tuple(map(StringAutomaton.outcome, readers, states)), texts[states])
    return list(found.values()), complete


def fresh_word(avoid: Iterable[str]) -> str:
    """A word that is none of these."""
    taken = set(avoid)
    return next(word for k in count() if (word := f"other{k or ''}") not in taken)


def strings_between(constants: Iterable[str], many: int) -> list[str]:
    """Strings: the constants, and strings that follow them before the next one, as far as there are any."""
    points = sorted({"", *constants})
    suffixes = (*_READABLE.replace(" ", ""), *("\0" * k for k in range(1, many + 1)))
    found = set(points)
    for low, high in pairwise([*points, None]):
        assert low is not None
        found.update([low + s for s in suffixes if high is None or low + s < high][:many])
    # The empty string comes last, because it reads oddly in an example.
    return sorted(found, key=lambda text: (not text, len(text), text))


def _representatives(known: set[str], ordered: bool) -> list[str]:
    """Characters that stand for all: those known, and one for every gap between them if order counts."""
    found = set(known)
    for low, high in pairwise([-1, *(sorted(map(ord, known)) if ordered else []), sys.maxunicode + 1]):
        readable = (c for c in _READABLE if low < ord(c) < high)
        others = (chr(p) for p in range(low + 1, high) if p not in _SURROGATES)
        found.update(islice((c for c in chain(readable, others) if c not in known), 1))
    return sorted(found, key=lambda c: ((_READABLE + c).index(c), c))
