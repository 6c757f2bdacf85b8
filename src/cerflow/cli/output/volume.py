"""The number of matches that a run writes: counted before they are unfolded, announced if large, and bounded."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cerflow import limits
from cerflow.cli.output.reporting import warn
from cerflow.cli.output.targets import free_space
from cerflow.cli.output.writing import Sink
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.row_limit import LESS, Bound, readable_number
from cerflow.engine.results.report import CountForm


def parse_most(text: str) -> int | None:
    """The greatest number of matches to write, None for any; raises ValueError for other texts."""
    if text.strip().lower() in ("none", "0"):
        return None
    plain = text.replace("_", "").replace(",", "")
    if not (plain.isascii() and plain.isdecimal()):
        raise ValueError(f"'{text}' is not a number of matches, nor 'none'")
    return int(plain)


class Volume:
    """The batches of matches; ``total`` is the number of their rows or a lower bound, once it is known."""

    def __init__(self, matches: Matches, most: int | None) -> None:
        self._matches = matches
        self._most = most
        self._bound = Bound(most)
        self._written = 0
        self.total: int | None = None

    def batches(self, max_rows: int, *, flat: bool, counts: CountForm) -> Iterator[pa.RecordBatch]:
        """The matches in batches; raises TooManyMatchesError before it unfolds matches beyond the bound."""
        return self._matches.announced(self._tell).to_batches(max_rows, flat=flat, counts=counts)

    def _tell(self, rows: int, exact: bool) -> None:
        self._bound.add(rows, exact)
        if self._bound.known <= limits.MATCHES_COUNTED or self.total is not None:
            return
        # Recognising once more costs little compared with writing so many matches.
        ahead = Bound(self._most)
        for _ in self._matches.announced(ahead.add).parts:
            pass
        self.total = ahead.known
        warn(f"{'' if ahead.exact else 'more than '}{readable_number(self.total)} matches will be written; {LESS}")

    def look_at_room(self, target: str, sink: Sink, written: int) -> None:
        """Warn, once, if the remaining matches will probably not fit on the disk of the target."""
        before, self._written = self._written, written
        if self.total is None or not before < limits.ROWS_WEIGHED <= written:
            return
        free = free_space(target)
        needed = sink.size * max(0, self.total - written) // written
        if free is not None and needed > free:
            more = readable_number(needed >> 20)
            warn(f"the disk of '{target}' has {free >> 20:,} MiB left, and the matches need {more} MiB more")
