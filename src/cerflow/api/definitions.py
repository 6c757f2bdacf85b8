"""The definitions of the papers, as functions: slow, for short streams, and right by definition.

A formula or an expression of SREMO is given as text, tree, in the notation of the builder or as a query, a stream as
events or as a list of dicts. Positions count from 0. Everything else in cerflow is compared with these.

>>> from cerflow.definitions import first_order_matches, next_at_most, sremo_match_string
>>> stream = [{"type": "A"}, {"type": "A"}, {"type": "B"}]
>>> sorted((n, sorted(positions)) for n, positions in first_order_matches("A AS x ; B AS y", stream))
[(2, [0, 2]), (2, [1, 2])]
>>> next_at_most({1, 2}, {0, 2})
True
>>> [sorted(marks) for marks in sremo_match_string("[TRUE] . [TRUE] AS x . [TRUE]", stream)]
[[('x', 1)]]
"""

from cerflow.api.reference import (
    first_order_matches,
    formula_matches,
    sremo_derivations,
    sremo_match_string,
    sremo_matches,
)
from cerflow.base.events import Stream, last_at_most, next_at_most

__all__ = [
    "Stream",
    "first_order_matches",
    "formula_matches",
    "last_at_most",
    "next_at_most",
    "sremo_derivations",
    "sremo_match_string",
    "sremo_matches",
]
