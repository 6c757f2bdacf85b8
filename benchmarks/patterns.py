"""Patterns as values, written in the words of each engine: sequences of steps, some of them repeated."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Group", "Pattern", "Step"]


@dataclass(frozen=True)
class Step:
    """One event of a type (or of one of several), with conditions: (attribute, operator, value).

    A value is a text, a number, or another step's attribute (`Step.at`).
    """

    label: str
    types: tuple[str, ...]
    conditions: tuple[tuple[str, str, object], ...] = ()
    repeated: bool = False

    def at(self, attribute: str) -> Attribute:
        """This step's attribute, for the conditions of a later step."""
        return Attribute(self.label, attribute)


@dataclass(frozen=True)
class Attribute:
    """An attribute of an earlier step."""

    label: str
    name: str

    def __str__(self) -> str:
        return f"{self.label}.{self.name}"


@dataclass(frozen=True)
class Group:
    """A sequence that is repeated as a whole."""

    parts: tuple[Step | Group, ...]


@dataclass(frozen=True)
class Pattern:
    """A sequence of steps and groups; other events may come between any two."""

    parts: tuple[Step | Group, ...]
    #: The attribute that windows measure.
    clock: str = "stock_time"

    def cel(self, window: int) -> str:
        """The pattern in cerflow's language, within a window of its clock."""
        conditions = " AND ".join(_conditions(self.parts))
        return f"SELECT * WHERE ({_sequence(self.parts)}) FILTER {conditions} WITHIN {window} [{self.clock}]"

    def sremo(self, window: int) -> str:
        """The same in SREMO: skip-till-any-match, with a register for every step that a later one speaks of."""
        stored = {
            value.label
            for step in _steps(self.parts)
            for _, _, value in step.conditions
            if isinstance(value, Attribute)
        }
        return f"{_skipping(self.parts, stored)} WITHIN {window} [{self.clock}]"

    def esper(self, window: int) -> str | None:
        """The pattern in EPL, within milliseconds; None if it has iterations, which EPL's patterns do not combine."""
        if any(isinstance(part, Group) or part.repeated for part in self.parts):
            return None
        first, *others = (f"every {step.label}=Tick({_filter(step)})" for step in _steps(self.parts))
        within = f"where timer:within({window} milliseconds)"
        return f"select {_steps(self.parts)[0].label}.time from pattern [{first} -> (({' -> '.join(others)}) {within})]"

    def flink(self) -> list[str]:
        """The pattern in the words of our Java program (`peers/flink/Patterns.java`)."""
        return _words(self.parts)


def _sequence(parts: tuple[Step | Group, ...]) -> str:
    return " ; ".join(_part(part) for part in parts)


def _part(part: Step | Group) -> str:
    if isinstance(part, Group):
        return f"({_sequence(part.parts)})+"
    kinds = part.types[0] if len(part.types) == 1 else f"({' OR '.join(part.types)})"
    return f"({kinds} AS {part.label})+" if part.repeated else f"{kinds} AS {part.label}"


def _steps(parts: tuple[Step | Group, ...]) -> list[Step]:
    return [step for part in parts for step in (_steps(part.parts) if isinstance(part, Group) else [part])]


def _conditions(parts: tuple[Step | Group, ...]) -> list[str]:
    return [
        f"{step.label}.{attribute} {operator} {_value(value)}"
        for step in _steps(parts)
        for attribute, operator, value in step.conditions
    ]


def _filter(step: Step) -> str:
    """What EPL asks of an event; of conditions with = there is an index."""
    kinds = f"type='{step.types[0]}'" if len(step.types) == 1 else f"type in ({', '.join(map(repr, step.types))})"
    return ", ".join(
        [kinds, *(f"{attribute} {operator} {_value(value)}" for attribute, operator, value in step.conditions)]
    )


def _value(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _skipping(parts: tuple[Step | Group, ...], stored: set[str]) -> str:
    return f"any({', '.join(_expression(part, stored) for part in parts)})"


def _expression(part: Step | Group, stored: set[str]) -> str:
    if isinstance(part, Group):
        return f"any({_skipping(part.parts, stored)}+)"
    types = " OR ".join(f"type = '{name}'" for name in part.types)
    tests = [types if len(part.types) == 1 else f"({types})"]
    tests += [f"{attribute} {operator} {_value(value)}" for attribute, operator, value in part.conditions]
    terminal = f"[{' AND '.join(tests)}] AS {part.label}" + (f" INTO {part.label}" if part.label in stored else "")
    return f"any({terminal}+)" if part.repeated else terminal


def _words(parts: tuple[Step | Group, ...]) -> list[str]:
    words: list[str] = []
    for part in parts:
        if isinstance(part, Group):
            words += ["(", *_words(part.parts), ")+"]
        else:
            conditions = "&".join(f"{a}{operator}{value}" for a, operator, value in part.conditions)
            words += [part.label, "|".join(part.types), conditions or "-", *(["+"] if part.repeated else [])]
    return words
