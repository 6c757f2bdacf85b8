"""The limit of a search, counted in steps so that it does not depend on the machine."""

from __future__ import annotations

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError


class Budget:
    """A number of steps that may still be taken: ``limits.DECISION_STEPS`` unless given."""

    def __init__(self, steps: int | None = None) -> None:
        self._steps = limits.DECISION_STEPS if steps is None else steps
        self._left = self._steps

    @property
    def exhausted(self) -> bool:
        """Whether more steps were taken than there were."""
        return self._left < 0

    def spend(self, steps: int = 1) -> None:
        """Take steps; raises `UnsupportedQueryError` once there are none left."""
        self._left -= steps
        if self._left < 0:
            raise UnsupportedQueryError(
                f"too large to decide: the automata need more than {self._steps:,} steps",
                hint="Compare smaller formulas, use smaller windows, or give a greater limit.",
            )
