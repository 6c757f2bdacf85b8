"""The command line: ``cerflow run``, ``check``, ``explain``, ``generate`` and ``warmup`` (spec §8).

Matches go to files or standard output, messages to standard error. Nothing in cerflow may import this room.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["main"]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let signals raise KeyboardInterrupt with their number, and end the process with 128 and the first of these.

    So it ends whatever becomes of the exception: libraries turn it into others, or pass over it.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: object) -> NoReturn:
        received.append(number)
        # Otherwise libraries would log the work that the exception interrupts.
        logging.disable()
        raise KeyboardInterrupt(number)

    ending = [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)]
    heeded = {number for number in ending if signal.getsignal(number) != signal.SIG_IGN}  # it is under nohup
    for number in heeded:
        signal.signal(number, interrupt)
    try:
        yield
    except BaseException:
        if not received:
            raise
    finally:
        for number in heeded:
            # There is nothing left to be removed.
            signal.signal(number, signal.SIG_DFL)
    if received:
        raise SystemExit(128 + received[0])


def main() -> None:
    """Entry point of the command ``cerflow``."""
    # The phase "starting" began with the process.
    begun = time.perf_counter() - time.process_time()
    with ended_by_signals():
        # This takes a while, in which signals may come.
        from cerflow.cli.app import app
        from cerflow.cli.output.reporting import reopen_closed_streams

        reopen_closed_streams()
        app(obj=begun)
