"""Signals that the processes of tests get."""

import signal

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]


def let_programs_hear():
    """Programs that tests start hear signals, also where the tests run in the background and ignore them."""
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_IGN:
            # What is ignored is ignored by programs that are started, too; a function is not passed on to them.
            signal.signal(number, lambda *_: None)
