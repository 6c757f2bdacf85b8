"""Random event kinds in random queries: some names of types become kinds, whatever the condition."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.language.event_kinds import with_kinds, written_out
from cerflow.language.parser import parse_condition
from cerflow.language.select import Select
from support.generators.queries import TYPES

#: Conditions that are true on many, some, few and no events; null makes several of them unknown.
CONDITIONS = (
    "v >= 1",
    "v > 0 OR w > 0.5",
    "NOT v = 1",
    "v * 2 < 0",
    "w = 0 AND k = 0",
    "s = 'a' OR s IS NULL",
    "s LIKE '%b%' AND type != 'A'",
    "type = 'B' OR v IN (0, 2)",
    "type = 'A'",
    "time() >= 3 AND position() < 8",
    "CASE WHEN v > 1 THEN 1 ELSE k END = 1",
    "coalesce(v, 9223372036854775807) > 4611686018427387904",
    "TRUE",
    "v < v",
)


@st.composite
def with_some_kinds(draw: st.DrawFn, select: Select) -> Select:
    """The query with some of the names `TYPES` as kinds; later ones may read those before."""
    names = draw(st.lists(st.sampled_from((*TYPES, "K")), min_size=1, unique=True))
    kinds = {}
    for name in names:
        condition = parse_condition(draw(st.sampled_from(CONDITIONS)), bare_attributes=True)
        kinds[name] = written_out(condition, kinds)
    return with_kinds(select, kinds)
