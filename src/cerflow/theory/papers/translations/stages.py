"""From a first-order formula to its complex events in a stream, stage by stage (P1 §8.1, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import shorten
from typing import Any

from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import ComplexEvent, Event, StreamGiven, as_stream
from cerflow.language.automaton import show_state, sorted_states
from cerflow.language.builder.given import of_formula
from cerflow.language.formula import Formula
from cerflow.language.printer import show
from cerflow.logic.analysis.first_order import Property, is_safe, is_well_formed
from cerflow.look.pictures.formula_svg import formula_svg
from cerflow.look.pictures.targets import shown_or_told
from cerflow.theory.papers.constructions.determinize import io_determinize, is_io_deterministic
from cerflow.theory.papers.model.faults import AutomatonError
from cerflow.theory.papers.model.models import CEA, show_edge
from cerflow.theory.papers.model.runs import reached_states, reported_matches
from cerflow.theory.papers.translations.conversions import compile_cel
from cerflow.theory.rewriting.first_order.properties import safe_form
from cerflow.theory.rewriting.first_order.waiting import lp_normal_form

_NEVER = "it can never match"


@dataclass(frozen=True)
class Stages:
    """The stages from a formula to its complex events; ``str`` and notebooks show it stage by stage.

    ``well_formed`` and ``safe`` are properties of the ``formula``. ``safe_form`` and ``lp_form`` are equivalent to it;
    ``automaton`` is the CEA of ``lp_form``, ``deterministic`` one that is I/O-deterministic, and ``matches`` are the
    pairs (n, C) of the latter in ``events``. A stage that does not exist is None, and ``reason`` says why.
    """

    formula: Formula
    well_formed: Property
    safe: Property
    safe_form: Formula | None = None
    lp_form: Formula | None = None
    automaton: CEA | None = None
    deterministic: CEA | None = None
    events: Sequence[Event] | None = None
    matches: frozenset[tuple[int, ComplexEvent]] | None = None
    reason: str | None = None

    def __str__(self) -> str:
        lines = []
        for title, value in self._shown():
            lines.append(f"{title}: {_text(value)}")
            if isinstance(value, CEA):
                lines += [
                    f"  {show_state(t.source)} → {show_state(t.target)}  {shorten(show_edge(t), 100, placeholder=' …')}"
                    for t in value.transitions
                ]
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Stages of {show(self.formula)}>"

    def _repr_html_(self) -> str:
        pieces = []
        for title, value in self._shown():
            pieces.append(f"<h4>{escape(title)}</h4>\n<p><code>{escape(_text(value))}</code></p>")
            if isinstance(value, Formula):
                pieces.append(shown_or_told(lambda formula=value: formula_svg(formula)))  # type: ignore[misc]
            elif isinstance(value, CEA):
                pieces.append(value._repr_html_())
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._rows()]
        if rows:
            pieces.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
        return "\n".join(pieces)

    def _shown(self) -> Iterator[tuple[str, Any]]:
        yield "formula", self.formula
        yield "well-formed", self.well_formed
        yield "safe", self.safe
        named = (
            ("safe form (Theorem 1)", self.safe_form, self.formula),
            ("LP form (Theorem 2)", self.lp_form, self.safe_form),
            ("CEA (Theorem 3)", self.automaton, None),
            ("I/O-deterministic (Proposition 1)", self.deterministic, self.automaton),
            ("evaluation", self.matches, None),
        )
        for title, value, before in named:
            if value is not None:
                yield title, "unchanged" if value is before else value
        if self.reason is not None:
            yield "ends here", self.reason

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        """For each event: its position, its values, the reachable states after it, and the matches it ends."""
        if self.events is None or self.matches is None or self.deterministic is None:
            return
        for event, states in zip(self.events, reached_states(self.deterministic, self.events)[1:]):
            ended = sorted(sorted(p for _, p in c) for n, c in self.matches if n == event.position)
            shown = ", ".join(map(show_state, sorted_states(states)))
            values = (f"{name}={value}" for name, value in event.attributes.items() if name != "type")
            yield (
                str(event.position),
                " ".join((event.type, *values)),
                shown or "∅",
                " ".join("{" + ", ".join(map(str, c)) + "}" for c in ended),
            )


@of_formula
def stages(formula: Formula, events: StreamGiven | None = None) -> Stages:
    """The stages of a formula of the first-order reading: checks, normal forms, automata, and matches (P1 Figure 3).

    ``events`` are a short stream, over which the deterministic automaton is run. A stage that does not exist ends the
    way with a reason: ill-formed formulas have no normal form, and conditions that relate events no CEA.

    >>> from cerflow.automata import stages
    >>> print(stages("(A AS x ; B AS y) FILTER x.v > 1", [{"type": "A", "v": 2}, {"type": "B", "v": 0}]))
    formula: A AS x ; B AS y FILTER x.v > 1
    well-formed: yes
    safe: yes
    safe form (Theorem 1): unchanged
    LP form (Theorem 2): (A AS x FILTER x.v > 1) ; B AS y
    CEA (Theorem 3): CEA: 3 states, 4 transitions
      q0 → q0  ⊤ | ◦
      q0 → q1  type = A AND v > 1 | •
      q1 → q1  ⊤ | ◦
      q1 → q2  type = B | •
    I/O-deterministic (Proposition 1): unchanged
    evaluation: 1 match
      0  A v=2  q0, q1
      1  B v=0  q0, q1, q2  {0, 1}
    """
    stream = None if events is None else as_stream(events)
    found: dict[str, Any] = {"formula": formula, "well_formed": is_well_formed(formula), "safe": is_safe(formula)}
    if not found["well_formed"]:
        return Stages(**found, reason="an ill-formed formula may depend on events to come (P1 §5.1)")
    try:
        found["safe_form"] = formula if found["safe"] else safe_form(formula)
        if found["safe_form"] is None:
            return Stages(**found, reason=_NEVER)
        found["lp_form"] = lp_normal_form(found["safe_form"])
        if found["lp_form"] is None:
            return Stages(**found, reason=_NEVER)
        automaton = found["automaton"] = compile_cel(found["lp_form"], reading="first-order")
        found["deterministic"] = automaton if is_io_deterministic(automaton) else io_determinize(automaton)
    except (AutomatonError, UnsupportedQueryError) as error:
        return Stages(**found, reason=error.reason if isinstance(error, UnsupportedQueryError) else str(error))
    if stream is not None:
        found["events"], found["matches"] = stream, reported_matches(found["deterministic"], stream)
    return Stages(**found)


def _text(value: Any) -> str:
    match value:
        case Formula():
            return show(value)
        case Property():
            return "yes" if value else f"no, {value.reason}"
        case frozenset():
            return f"{len(value)} match" if len(value) == 1 else f"{len(value)} matches"
    return str(value)
