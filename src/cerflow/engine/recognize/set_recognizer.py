"""The recogniser of a set of queries takes events and returns the matches of each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cerflow.base.errors import SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.recognizer import StreamRecognizer
from cerflow.engine.state import snapshot
from cerflow.engine.state.snapshot import Contents


class SetRecognizer(StreamRecognizer):
    """Recognises the matches of several queries in a stream that arrives in batches; see `QuerySet.recognizer`.

    It is for one caller at a time, like a `Recognizer`.
    """

    def __init__(
        self, plans: Mapping[str, Plan], schema: Schema, on_bad_record: BadRecordPolicy, memory: int | None = None
    ) -> None:
        self._use(Driver(plans, RecordChecker(schema, on_bad_record), memory=memory))

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
        return {
            name: machines[name].matches(found[name], before[name]) for name in self._driver.plans if found.get(name)
        }

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `QuerySet.restore`. Matches handed out before are not part of it."""
        whole, parts = self._driver.contents(together=True)
        arrays = {
            f"part {k}": np.frombuffer(snapshot.write_snapshot(snapshot.RECOGNIZER, part), np.uint8)
            for k, part in enumerate(parts)
        }
        return snapshot.write_snapshot(snapshot.SET, replace(whole, arrays=arrays))

    def take_over(self, data: bytes) -> None:
        """Replace the present state by a snapshot of the same queries.

        Raises `SnapshotError` if the snapshot is damaged or of other queries; then nothing has changed.
        """
        with self._driver.alone():
            whole = snapshot.read_snapshot(snapshot.SET, data)
            given, names = whole.description.get("names"), list(self._driver.machines)
            if given != names:
                raise SnapshotError(f"the snapshot is of the queries {_listed(given)}, not {_listed(names)}")
            parts = [_part(whole, k, name) for k, name in enumerate(names)]
            self._driver.take_over(parts, whole)


def _part(whole: Contents, k: int, name: str) -> Contents:
    """The contents that a snapshot of a set holds for its query number ``k``."""
    if f"part {k}" not in whole.arrays:
        raise SnapshotError(f"the snapshot is damaged: it lacks the query '{name}'")
    return snapshot.read_snapshot(snapshot.RECOGNIZER, whole.arrays[f"part {k}"].tobytes())


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else "of nobody"
