"""The stream as a strip: the events of matches in the colour of their label, one lane for each."""

from __future__ import annotations

from cerflow.drawing.svg import LINE, Sheet, text_width
from cerflow.studio.results import Outcome

_WIDTH = 300
#: Lanes that are drawn, and colours, which the style of the page has.
_LANES, _COLOURS = 8, 6


def strip_svg(outcome: Outcome) -> str:
    """The positions of the events of matches by label as SVG; empty if there are none."""
    shown, size = [*outcome.positions.items()][:_LANES], outcome.events
    if not shown:
        return ""
    listed = outcome.table.num_rows
    some = "" if outcome.count == listed else f" of the first {listed:,} matches"
    names = [f"{label}  {len(places):,}" for label, places in shown]
    left = max(map(text_width, names), default=0.0) + 12
    said = "; ".join(f"{label}: {len(p):,} events, from {min(p):,} to {max(p):,}" for label, p in shown)
    sheet = Sheet(f"Events{some} by label, in the order of the stream", "auto", said)
    for k, (name, (_, places)) in enumerate(zip(names, shown)):
        middle = k * LINE
        group = sheet.group(f"cs-lane{k % _COLOURS}", name)
        sheet.text(0, middle, ((name, ""),), group)
        sheet.line(((left, middle), (left + _WIDTH, middle)), "cf-rule", group)
        for column in sorted({place * (_WIDTH - 2) // size for place in places}):
            sheet.rect(left + column, middle - 6, 2, 12, "cs-event", group, 0)
    return str(sheet)
