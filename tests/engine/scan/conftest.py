"""What the tests of the scan share."""

import pytest

from cerflow.base import limits
from cerflow.engine.events.reader import EventReader


@pytest.fixture
def rows_read(monkeypatch):
    """Numbers of events that came to the automaton, batch by batch."""
    found, read = [], EventReader.read

    def count(*given):
        events, count = read(*given)
        found.append(count)
        return events, count

    monkeypatch.setattr(EventReader, "read", count)
    return found


@pytest.fixture
def by_automaton(monkeypatch):
    """Leave pairs of events to the automaton."""
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)
