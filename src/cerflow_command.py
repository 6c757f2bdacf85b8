"""The script ``cerflow``: signals end it as promised from the beginning, also while cerflow is being imported."""

import os
import signal

__all__ = ["heed_signals", "main"]


def heed_signals() -> None:
    """Let a signal before the command line takes over end the process with 128 and the signal's number."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # it is under nohup
            # Nothing has been begun that would have to be removed.
            signal.signal(number, lambda number, _: os._exit(128 + number))


def main() -> None:
    """Run the command line."""
    heed_signals()
    from cerflow.cli import main as run

    run()
