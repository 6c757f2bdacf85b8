"""A run of a query over the sample, which can be stopped."""

from __future__ import annotations

import threading
import time

import pyarrow as pa

from cerflow import limits
from cerflow.engine.stopping import checked
from cerflow.errors import CerflowError
from cerflow.language.event_kinds import kinds_in
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.studio.results import Outcome
from cerflow.studio.sampling import LoadedEvents
from cerflow.studio.session import StoppedError
from cerflow.studying.wording import sentence

#: Rows of the first push of a run, and the seconds that a push should take at most.
_FIRST_ROWS, _PROMPT = 256, 0.4


class StoppableRun:
    """A run of a query over a sample that another thread can stop; it ends by itself at a limit or after some time."""

    def __init__(self, query: Query | Program, events: LoadedEvents, *, most: int, seconds: float) -> None:
        self._query = query
        self._events = events
        self._most = most
        self._seconds = seconds
        self._stopped = threading.Event()
        #: The number of events that have been read.
        self.reached = 0

    def stop(self) -> None:
        """End the run soon."""
        self._stopped.set()

    def __call__(self) -> Outcome:
        """The outcome; raises what a recogniser raises, such as `MemoryLimitError`."""
        begin = time.perf_counter()
        table, roles = self._events.table, self._events.roles
        recognizer = self._query.recognizer(table.schema, on_bad_record="skip", memory=limits.STUDIO_MEMORY, **roles)
        # A machine that is slow to load the engine still reads events.
        prepared = time.perf_counter()
        tables: list[pa.Table] = []
        count = listed = 0
        ended = None

        def check() -> None:
            if self._stopped.is_set():
                raise StoppedError("it was stopped")
            if time.perf_counter() - prepared > self._seconds:
                raise StoppedError(f"the limit of {self._seconds:g} s is exceeded")

        # Matches are shown of whole pushes, so where events cost much, few are pushed.
        size = min(_FIRST_ROWS, limits.STUDIO_PUSHED_ROWS)
        try:
            with checked(check):
                while self.reached < table.num_rows:
                    pushed = time.perf_counter()
                    matches = recognizer.push(table.slice(self.reached, size))
                    count += matches.count()
                    if listed < self._most or not tables:
                        tables.append(matches[: self._most - listed].to_arrow())
                        listed += tables[-1].num_rows
                    self.reached = min(self.reached + size, table.num_rows)
                    spent = time.perf_counter() - pushed
                    if spent < _PROMPT / 4:
                        size = min(2 * size, limits.STUDIO_PUSHED_ROWS)
                    elif spent > _PROMPT:
                        size = max(1, size // 2)
                    if self.reached < table.num_rows:
                        check()
        except StoppedError as stop:
            ended = str(stop)
        except MemoryError as error:
            ended = sentence(error) if isinstance(error, CerflowError) else "the memory of this machine is full"
        seconds = time.perf_counter() - begin
        found = pa.concat_tables(tables).combine_chunks() if tables else pa.table({})
        kinds = self._query.definitions if isinstance(self._query, Program) else kinds_in(self._query.tree)
        unit, types = self._events.time_unit, {*self._events.types, *kinds}
        return Outcome(count, found, self.reached, seconds, ended, unit, types)
