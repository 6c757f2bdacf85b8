"""Stops long work: a kernel continues in another thread, so its caller waits where it can be interrupted.

Python handles signals only between its own instructions. The caller may also have a check of its own, which raises an
error when the work must stop: see `checked`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two checks.
_BETWEEN = 0.05

#: Detections between two checks.
_PORTION = 100_000

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def checked(check: Callable[[], None]) -> Iterator[None]:
    """Within the block, call ``check`` often, also within pushes; the error that it raises ends the work.

    Checks of blocks around this one count, too.
    """
    outer = _check.get()

    def both() -> None:
        if outer is not None:
            outer()
        check()

    token = _check.set(both)
    try:
        yield
    finally:
        _check.reset(token)


def look() -> None:
    """Raise the error of the caller's check if the work must stop."""
    check = _check.get()
    if check is not None:
        check()


def portions(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Parts of a range that take a kernel less than a tenth of a second, with a `look` before each."""
    for begin in range(first, last, _PORTION):
        look()
        yield begin, min(begin + _PORTION, last)


def wait_for(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The result of work in another thread.

    If the caller is interrupted, or its check fails, ``stop`` is called, and the work ends before the error is raised.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # it is raised below, in the thread of the caller
            failed.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, name="cerflow", daemon=True).start()
    try:
        while not ended.wait(_BETWEEN):
            look()
    except BaseException:
        stop()
        while not ended.is_set():
            try:
                ended.wait()
            except BaseException:  # a second signal; the work is about to end
                continue
        raise
    if failed:
        raise failed[0]
    return found[0]
