"""The command line: ``cerflow run``, ``check``, ``explain``, ``generate`` and ``warmup`` (spec §8).

Matches go to files or standard output, messages to standard error. Nothing in cerflow may import this room.
"""

from __future__ import annotations

import time

from cerflow.cli.signals import ended_by_signals

__all__ = ["main"]


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
