"""The recogniser of a set of queries takes events and returns the matches of each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np

from cerflow.base.errors import SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.store import EventStore
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.state import snapshot
from cerflow.engine.state.snapshot import Contents


class SetRecognizer:
    """Recognises the matches of several queries in a stream that arrives in batches; see `QuerySet.recognizer`.

    It is for one caller at a time, like a `Recognizer`.
    """

    def __init__(
        self, plans: Mapping[str, Plan], schema: Schema, on_bad_record: BadRecordPolicy, memory: int | None = None
    ) -> None:
        self._plans = plans
        self._driver = Driver(plans, RecordChecker(schema, on_bad_record), memory=memory)

    def __copy__(self) -> SetRecognizer:
        """See `Recognizer.__copy__`."""
        checker = self._driver.checker
        copied = SetRecognizer(self._plans, checker.schema, checker.policy, self._driver.memory)
        copied._driver.prompt = self._driver.prompt
        copied.take_over(self.snapshot())
        return copied

    def __deepcopy__(self, _: object) -> SetRecognizer:
        return copy(self)

    @property
    def events(self) -> int:
        """The number of events accepted so far."""
        return self._driver.checker.accepted

    @property
    def bad_records(self) -> int:
        """The number of events refused so far, including events that only some of the queries refuse."""
        return self._driver.checker.refused

    def push(self, events: Any) -> dict[str, Matches]:
        """Process events; returns the matches of each query that has any. See `Recognizer.push`."""
        return self._matches(self._driver.push, events)

    def advance(self, time: Any) -> dict[str, Matches]:
        """Let the time pass; returns matches as `push` does. See `Recognizer.advance`."""
        return self._matches(self._driver.advance, time)

    def _matches(self, find: Callable[[Any], Mapping[str, list[Part]]], given: Any) -> dict[str, Matches]:
        machines = self._driver.machines
        before = {name: machine.reported for name, machine in machines.items()}
        found = find(given)
        return {name: machines[name].matches(found[name], before[name]) for name in self._plans if found.get(name)}

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `QuerySet.restore`. Matches handed out before are not part of it."""
        driver = self._driver
        with driver.alone():
            driver.forget()
            counts, kept = driver.checker.counts, driver.store.kept()
            nothing = EventStore(driver.store.schema).kept()
            parts = {
                name: machine.contents(counts, nothing if machine.store is driver.store else machine.store.kept())
                for name, machine in driver.machines.items()
            }
            arrays = {
                f"part {k}": np.frombuffer(snapshot.write_snapshot(snapshot.RECOGNIZER, part), np.uint8)
                for k, part in enumerate(parts.values())
            }
            contents = Contents({**counts, "names": list(parts)}, arrays, kept.rows, kept.positions)
            return snapshot.write_snapshot(snapshot.SET, contents)

    def take_over(self, data: bytes) -> None:
        """Replace the present state by a snapshot of the same queries.

        Raises `SnapshotError` if the snapshot is damaged or of other queries; then nothing has changed.
        """
        with self._driver.alone():
            whole = snapshot.read_snapshot(snapshot.SET, data)
            header, names = whole.description, list(self._driver.machines)
            if header.get("names") != names:
                given = _listed(header.get("names"))
                raise SnapshotError(f"the snapshot is of the queries {given}, not {_listed(names)}")
            parts = [_part(whole, k, name) for k, name in enumerate(names)]
            self._driver.take_over(header, parts, whole)


def _part(whole: Contents, k: int, name: str) -> Contents:
    """The contents that a snapshot of a set holds for its query number ``k``."""
    if f"part {k}" not in whole.arrays:
        raise SnapshotError(f"the snapshot is damaged: it lacks the query '{name}'")
    return snapshot.read_snapshot(snapshot.RECOGNIZER, whole.arrays[f"part {k}"].tobytes())


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else "of nobody"
