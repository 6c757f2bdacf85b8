"""The windows that runs of a finished transducer have yet to meet."""

from __future__ import annotations

from cerflow.automata.model.transducer import Transducer, Write
from cerflow.conditions.guards import InWindow, Measure, Stored
from cerflow.language.formula import Window

__all__ = ["window_of_runs", "windows_needed"]


def windows_needed(transducer: Transducer) -> list[frozenset[int]]:
    """For each state, the registers with starts of windows that every way from it to a match still tests.

    Once such a window has passed, the run cannot lead to a match.
    """
    windows = frozenset(r for r, kept in enumerate(transducer.registers) if kept.window is not None)
    needed = [windows] * transducer.states
    changed = bool(windows)
    while changed:
        changed = False
        for t in transducer.transitions:
            if t.skips:
                continue
            asked = {a.start.register for a in t.atoms if isinstance(a, InWindow)}
            written = {w.register for w in t.writes if w.fresh}
            after = frozenset[int]() if t.target in transducer.final else needed[t.target] - written
            left = needed[t.source] & (asked | after)
            if left != needed[t.source]:
                needed[t.source] = left
                changed = True
    return needed


def window_of_runs(transducer: Transducer) -> Window | None:
    """A window that bounds every run from the event with which it leaves the initial states to its detection.

    Before that event the run waits and remembers nothing. None if there is no such window.
    """
    if not transducer.initial <= transducer.skipping - transducer.final:
        return None
    begins = [t for t in transducer.transitions if t.source in transducer.initial and not t.stays]
    ends = [t for t in transducer.transitions if t.target in transducer.final]
    if transducer.window is not None and all(t.labels for t in (*begins, *ends)):
        return transducer.window
    again = any(t.target in transducer.initial and not t.stays for t in transducer.transitions)
    for number, register in enumerate(transducer.registers):
        if register.window is None or again:
            continue
        begin = Write(number, (Measure(register.window),), fresh=True)
        asked = InWindow(Stored(number, 0), register.window)
        writing = [t for t in transducer.transitions if any(w.register == number for w in t.writes)]
        begun = set(writing) <= set(begins) and all(begin in t.writes or t.target in transducer.final for t in begins)
        if begun and all(t in begins or asked in t.atoms for t in ends):
            return register.window
    return None
