"""The sessions of the tabs of browsers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cerflow import limits
from cerflow.studio.session import StudioSession


class Tabs:
    """The sessions of the tabs of browsers, by the names that the browsers give to their tabs.

    The first tab has the session that the command made; others begin with what that began with.
    """

    def __init__(self, first: StudioSession) -> None:
        self._pattern = first.twin()
        self._free: StudioSession | None = first
        self._sessions: dict[str, StudioSession] = {}

    def of(self, tab: str, asked: Mapping[str, str] = MappingProxyType({})) -> StudioSession:
        """The session of a tab; a session that has rested while many others were looked at is forgotten.

        A new one begins with the query that is ``asked`` for, as a link does.
        """
        new = tab not in self._sessions
        found = self._sessions.pop(tab, None) or self._free or self._pattern.twin()
        self._free = None
        self._sessions[tab] = found
        if new and "query" in asked:
            found.follow(asked)
        while len(self._sessions) > limits.STUDIO_TABS:
            self._sessions.pop(next(iter(self._sessions)))
        return found
