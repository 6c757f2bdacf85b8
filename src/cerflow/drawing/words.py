"""What a pattern says, in words, for who does not see its picture."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.language import formula as f
from cerflow.language.node import Node, fold
from cerflow.language.printer import show
from cerflow.language.select import Select

_SAID: dict[type[Node], str] = {
    f.Sequence: "{0}, later {1}",
    f.StrictSequence: "{0}, and the very next event is {1}",
    f.Disjunction: "either {0} or {1}",
    f.Conjunction: "{0} and {1} in any order",
    f.Iteration: "one or more of: {0}",
    f.StrictIteration: "one or more, without a gap, of: {0}",
    f.Unless: "{0}, with nothing of this since the stream began: {1}",
    f.Without: "{0}, with nothing of this in between: {1}",
    f.NotFollowedBy: "{0}, not followed for {window} by {1}",
    f.As: "{0} as {label}",
    f.Filter: "{0}, where {condition}",
    f.Within: "{0}, all within {window}",
    f.AnyEvent: "any event",
    f.EventType: "{name}",
    f.EventKind: "{name}",
}


def in_words(tree: Node) -> str:
    """A query or a part of it in words; parts without words stand as they are written."""

    def said(current: Node, below: Sequence[str]) -> str:
        if isinstance(current, Select):
            keys = ", ".join("/".join(key) for key in current.partition)
            window = "" if current.window is None else f", all within {show(current.window)}"
            return below[0] + window + (f", for each {keys}" if keys else "")
        if type(current) not in _SAID:
            return show(current, kinds=False)
        parts = {name: getattr(current, name, "") for name in ("name", "label", "window", "condition")}
        told = {name: show(part) if isinstance(part, Node) else part for name, part in parts.items()}
        return _SAID[type(current)].format(*below, **told)

    return fold(tree, said)
