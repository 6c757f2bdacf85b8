"""Several threads over one table: slices of the stream, each recognised with the events of one window before it.

Slices (see `division`) are recognised in parallel and independently, and their matches are handed out in the
order of the slices. Kernels, and most of what prepares columns, run without Python's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Event
from time import perf_counter

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.measures import outside, window_size
from cerflow.engine.events.time_order import EventsInOrder
from cerflow.engine.layout import NULL
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.finite_stream import FiniteStream
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.slices.cutting import Slice, duration_of_keys, keys_of
from cerflow.engine.slices.division import Division, divided
from cerflow.engine.stopping import checked
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window

#: Times that each step of the search for the first event of a slice compares.
_TRIED = 32


class InSlices:
    """The parts of the matches of a query in order, recognised again by several threads at every iteration.

    The thread of the reader recognises the ``first`` slice. If the others take as long for each event and too little
    time for threads to pay, it goes on; otherwise the threads share the ``others``.
    """

    def __init__(self, stream: FiniteStream, threads: int, first: Slice, others: Sequence[Slice]) -> None:
        self._stream = stream
        self._threads = threads
        self._first = first
        self._others = others

    def __iter__(self) -> Iterator[Part]:
        idle = [self._stream.driver(0)]
        first, stop = self._first, self._others[-1].stop
        begin = perf_counter()
        found = self._recognize(first, idle)
        seconds = (perf_counter() - begin) / first.stop * (stop - first.stop)
        if seconds < limits.THREAD_SECONDS:
            yield from found
            yield from self._advance(idle.pop(), first.stop, stop)
        else:
            yield from self._share(found, seconds, idle)

    def _share(self, found: list[Part], seconds: float, idle: list[Driver]) -> Iterator[Part]:
        """The parts found in the first slice, then those that the threads find in the others in about that time."""
        pool, ended = ThreadPoolExecutor(self._threads), Event()
        running = deque([Future[list[Part]]()])
        running[0].set_result(found)
        try:
            for some in self._joined(seconds):
                running.append(self._submitted(pool, ended, partial(self._recognize, some, idle)))
                # No more slices wait to be read than one, and one for each thread.
                if len(running) > self._threads:
                    yield from running.popleft().result()
            while running:
                yield from running.popleft().result()
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)

    def _joined(self, seconds: float) -> Iterator[Slice]:
        """The other slices, neighbours joined so that each takes as long as pays for beginning it."""
        pays = int(seconds / limits.THREAD_SLICE_SECONDS / self._threads) * self._threads
        slices = min(max(pays, self._threads), len(self._others))
        for some in np.array_split(np.arange(len(self._others)), slices):
            begin, end = self._others[some[0]], self._others[some[-1]]
            yield Slice(begin.begin, begin.start, end.stop)

    def _submitted(self, pool: ThreadPoolExecutor, ended: Event, work: Callable[[], list[Part]]) -> Future[list[Part]]:
        """The parts that work in another thread finds, which ends soon when the reader or its check ends."""

        def check() -> None:
            if ended.is_set():
                raise CancelledError

        def watched() -> list[Part]:
            with checked(check):
                return work()

        return pool.submit(copy_context().run, watched)

    def _recognize(self, some: Slice, idle: list[Driver]) -> list[Part]:
        """The parts of a slice; ``idle`` are recognisers that have nothing to do, as this one has then."""
        try:
            driver = idle.pop()
        except IndexError:
            driver = self._stream.driver(some.begin)
        driver.begin_anew(some.begin)
        for _ in self._stream.detected_between(driver, some.begin, some.start):
            pass
        found = self._advance(driver, some.start, some.stop)
        idle.append(driver)
        return found

    def _advance(self, driver: Driver, start: int, stop: int) -> list[Part]:
        """The parts detected by the events ``[start, stop)``, the next of a driver; after the last one by time too."""
        # A driver may go on after the first slice, not after others.
        ending = start >= self._first.stop
        detected = self._stream.detected_between(driver, start, stop, ending=ending)
        found = [part for _, parts in detected for part in parts]
        if stop == self._others[-1].stop:
            found += (part for _, parts in self._stream.detected_at_end(driver) for part in parts)
        return found


def parts_in_slices(plan: Plan, stream: FiniteStream, threads: int) -> InSlices | None:
    """The parts of the matches of the one query of a stream, recognised by several threads.

    None if one thread has to do it (see `divided`), or should as the window is long compared with the stream.
    """
    slices = None
    if threads > 1:
        division = divided(plan.select, plan.transducer, plan.schema, threads=True)
        slices = _slices(division, stream.events, plan.schema, threads)
    return None if slices is None else InSlices(stream, threads, slices[0], slices[1:])


def _slices(division: Division, events: EventsInOrder, schema: Schema, threads: int) -> list[Slice] | None:
    """Slices for this many threads; None if they would have to begin too far back, or there is no window."""
    count = len(events)
    first = max(limits.THREAD_SLICE_LEAST, count // limits.THREAD_FIRST)
    if division.window is None or count <= first:
        return None
    begins = _begins(division.window, division.late, events, schema)
    if begins is None:
        return None

    def cut(length: int) -> tuple[list[Slice], int, int]:
        """Slices of about this many events, as many for each thread beside the first; this length and the overlap."""
        length = -(-(count - first) // (-(-(count - first) // (length * threads)) * threads))
        starts = np.array([0, *range(first, count, length)])
        firsts = np.clip(begins(starts), 0, starts)
        cuts = zip(firsts.tolist(), starts.tolist(), [*starts[1:].tolist(), count])
        return [Slice(*places) for places in cuts], length, int((starts - firsts).max())

    least = max(limits.THREAD_SLICE_LEAST, -(-count // (limits.THREAD_SLICES * threads)))
    found, length, longest = cut(min(least, limits.THREAD_SLICE_MOST))
    if longest * limits.THREAD_OVERLAP > length:
        found, length, longest = cut(longest * limits.THREAD_OVERLAP)
    return found if longest * limits.THREAD_OVERLAP_LEAST <= length else None


def _begins(window: Window, late: bool, events: EventsInOrder, schema: Schema) -> Callable[[Ints], Ints] | None:
    """A function that says from which row on the events matter to a slice that starts with a row, for many of these.

    The rows are in the order of time. None if a measure decreases; the one thread that sees that says so.
    """
    count = len(events)
    if isinstance(window, CountWindow):
        return lambda starts: starts - min(window.events, count)
    if isinstance(window, DurationWindow):
        times, duration = events.select([str(schema.time)]).column(0), duration_of_keys(window, schema)

        def keys_at(places: Ints) -> Ints:
            return keys_of(times.take(array_of_numbers(places)))

        def first_beyond(starts: Ints) -> Ints:
            """For each bound the first event whose time is greater; only some times are looked at, as times ascend."""
            bound = duration.bounds(keys_at(np.maximum(starts - late, 0)))
            low, high = np.zeros(len(bound), np.int64), np.full(len(bound), count)
            while (low < high).any():
                places = low[:, None] + (high - low)[:, None] * np.arange(_TRIED) // _TRIED
                beyond = keys_at(np.minimum(places, count - 1).ravel()).reshape(places.shape) > bound[:, None]
                at, rows = _TRIED - beyond.sum(axis=1), np.arange(len(bound))
                high = np.where((at < _TRIED) & (low < high), places[rows, np.minimum(at, _TRIED - 1)], high)
                low = np.where((at > 0) & (low < high), places[rows, at - 1] + 1, low)
            return low

        return first_beyond
    assert isinstance(window, AttributeWindow)
    measure = keys_of(events.select([window.attribute]).column(0))
    known = measure != NULL
    greatest: Ints = np.maximum.accumulate(measure)
    if not (greatest[known] == measure[known]).all():
        return None
    # An event without a measure has the greatest one before it.
    size, floats = window_size(window, schema, "us"), schema.kind(window.attribute) is ValueKind.FLOAT
    return lambda starts: np.searchsorted(greatest, outside(greatest[starts], size, floats=floats), "right")
