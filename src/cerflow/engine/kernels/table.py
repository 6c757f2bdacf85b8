"""All kernels of the library, by the units that are compiled together.

A kernel gets the address of a row of words: one word for each integer, the address and the lengths of each array, then
room for all results but the first. An inner kernel is called by other kernels, which pass its integers directly.

Each argument is written as the type of the integer or of the array's elements (as NumPy writes it: ``q`` int64, ``i``
int32, ``b`` int8, ``B`` uint8, ``Q`` uint64, ``d`` float64, ``?`` a truth value), and the number of axes.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.calling import UNITS as UNITS
from cerflow.engine.kernels.base.calling import Kernel

# The units that take longest to compile come first.

# Batches.
scan = Kernel("scan", "scan.scan", "scan", "q q q")
slot_of = Kernel("scan", "scan.scan", "slot_of", "q2 q q")
all_valid = Kernel("scan", "scan.check", "all_valid", "q q q")
next_dictionary = Kernel("scan", "scan.values", "next_dictionary", "q q q")
has_twice = Kernel("scan", "scan.text_columns", "has_twice", "q q q q q i1")
mark_equal = Kernel("scan", "scan.text_columns", "mark_equal", "q q q q q q q B1")
find_rows = Kernel("scan", "rows.neighbours", "find_rows", "q q q q q q")
write_candidates = Kernel("scan", "scan.scan", "write_candidates", "q")
flow = Kernel("scan", "rows.flow", "flow", "q q q q q")
flow_by_key = Kernel("scan", "rows.flow_by_key", "flow_by_key", "q q q q q q q")
number_events = Kernel("scan", "rows.key_rows", "number_events", "q q q q", results=1)
join_events = Kernel("scan", "rows.joins", "join_events", "q q q q q q q", results=5)
absent = Kernel("scan", "rows.absence", "absent", "q q q q q q q i2", results=6)
ask_rows = Kernel("scan", "base.calls", "ask_rows", "q q1 q i1")

# Matches: count, unfold and choose them.
fold_counts = Kernel("matches", "matches.fold", "fold_counts", "q2 q2 q2 i2 q q2 q2 q2 q1 i1 q1")
fold_values = Kernel("matches", "matches.fold", "fold_values", "q2 d2 q2 i2 q d2 d2 d2 q1 i1 q1")
slide_counts = Kernel("matches", "matches.slide", "slide_counts", "q2 q2 q2 i2 q q2 q2 i1 q1 q2 q3 q2 q3 q1 i1 q1")
slide_values = Kernel("matches", "matches.slide", "slide_values", "q2 d2 q2 i2 q d2 d2 i1 q1 d2 d3 d2 d3 d1 i1 q1")
unfold = Kernel("matches", "matches.unfold", "unfold", "q2 i2 q2 q2 q q1 i2 i2 i1 i1 q2 i1 i1 i1 i2 i1", results=2)
order_detections = Kernel("matches", "matches.unfold", "order_detections", "q2 i2 q2 q2", results=0)
gather_texts = Kernel("matches", "matches.gather", "gather_texts", "i1 q2 q q q q", results=0)
unrank = Kernel("choices", "matches.search", "unrank", "q2 i2 q1 q q q i1")
search = Kernel("choices", "matches.search", "search", "q2 i2 q2 q1 d1 q1 q d2 d2 i1 q1 i2 q1 d2 i1")
pick = Kernel("choices", "matches.pick", "pick", "q2 q q2 i2 q2 ? i1 i1 i1 i2 i2 q2 i2 q2", results=3)
largest = Kernel(
    *("choices", "matches.largest", "largest"),
    "q2 q q2 i2 q2 ?1 i1 i2 i1 i2 i2 i2 i2 i2 i1 i2 i2 i1 q2 i2 q2",
    results=3,
)

# The step, and the parts that only some queries need.
advance = Kernel("step", "step.advance", "advance", "q q q", results=2)
call_predicate = Kernel("programs", "step.bytecode", "call_predicate", "q q q q q q", inner=True)
compute = Kernel("programs", "scan.programs", "compute", "q q q q", inner=True)
group_by_labels = Kernel("sets", "step.sets", "group_by_labels", "q q q q q q q", inner=True)
choose = Kernel("strategies", "step.choose", "choose", "q q q q q q", inner=True)
settle = Kernel("strategies", "step.choose", "settle", "q q q q", inner=True)
let_go = Kernel("strategies", "step.choose", "let_go", "q q q", inner=True)
enter = Kernel("strategies", "state.lists", "enter", "q q q q q", inner=True)

# The state as a whole.
sweep = Kernel("state", "state.upkeep", "sweep", "q q q", results=0)
restore_links = Kernel("state", "state.upkeep", "restore_links", "q", results=0)
list_used = Kernel("state", "state.upkeep", "list_used", "q i1 i1")
weave = Kernel("state", "step.ticks", "weave", "q q q1 q2 q1 i1 q q q q q2 q2", results=2)
collect = Kernel("state", "state.graph", "collect", "q q q2 q2 i1 i1 i1", results=2)
