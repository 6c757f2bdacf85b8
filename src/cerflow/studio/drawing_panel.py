"""The automaton as Mermaid draws it, with what an event did in colour."""

from __future__ import annotations

from collections.abc import Collection

from cerflow import limits
from cerflow.automata.model.transducer import Transducer
from cerflow.errors import UnsupportedQueryError
from cerflow.from_automata.diagrams import to_mermaid

__all__ = ["automaton_text", "mermaid_config"]


def automaton_text(
    transducer: Transducer, *, alive: Collection[int] = (), fired: Collection[int] = (), detected: Collection[int] = ()
) -> str:
    """The automaton for Mermaid; states that are ``alive`` or ``detected`` and transitions that ``fired`` stand out.

    Raises `UnsupportedQueryError` for an automaton that is too large to be read.
    """
    if len(transducer.transitions) > limits.DRAWN_TRANSITIONS:
        raise UnsupportedQueryError(
            f"the automaton has {transducer.states} states and {len(transducer.transitions)} transitions, "
            "which are too many for a picture"
        )
    # The page says beside the picture what registers hold.
    notes = ("  note", "  style note")
    drawn = [line for line in to_mermaid(transducer).splitlines() if not line.startswith(notes)]
    lines = [
        *drawn,
        "  classDef alive fill:#6366f1,stroke:#4338ca,color:#ffffff",
        "  classDef detected fill:#16a34a,stroke:#166534,color:#ffffff",
    ]
    lines += [f"  class q{state} alive" for state in alive]
    lines += [f"  class q{state} detected" for state in detected]
    # The arrows that lead to the initial states stand before all transitions.
    arrows = len(transducer.initial)
    lines += [f"  linkStyle {arrows + number} stroke:#6366f1,stroke-width:3px" for number in fired]
    return "\n".join(lines) + "\n"


def mermaid_config(dark: bool) -> dict[str, object]:
    """The settings of Mermaid for a page that is dark or light."""
    return {"theme": "dark" if dark else "neutral", "flowchart": {"htmlLabels": True, "wrappingWidth": 320}}
