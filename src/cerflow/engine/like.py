"""Patterns of LIKE taken apart, for those who have other means to find texts."""

from __future__ import annotations

__all__ = ["MANY", "ONE", "pieces", "tokens"]

#: The wildcards in `tokens`: any characters, and one.
MANY, ONE = object(), object()


def tokens(pattern: str) -> list[str | object]:
    """Literal texts (none empty), `MANY` and `ONE`, in their order."""
    found: list[str | object] = []
    taken = iter(pattern)
    for c in taken:
        if c in "%_":
            found.append(MANY if c == "%" else ONE)
            continue
        literal = next(taken, "\\") if c == "\\" else c
        if found and isinstance(found[-1], str):
            found[-1] += literal
        else:
            found.append(literal)
    return found


def pieces(pattern: str) -> list[str] | None:
    """The literal texts between the ``%`` of a pattern, the first and the last of which may be empty.

    None if there is a ``_`` in it.
    """
    found = [""]
    for token in tokens(pattern):
        if token is ONE:
            return None
        if token is MANY:
            found.append("")
        else:
            assert isinstance(token, str)
            found[-1] += token
    return found
