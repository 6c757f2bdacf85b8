"""Numba kernels: plain functions on arrays, driven by tables, one set for all queries.

They never raise. If an array is full they return a reason; the caller makes room and calls again.

Every loop ends. Lists (of configurations, of partitions, of entries with one hash) and heaps have no cycles, because an
entry enters one when it is made and leaves it before it is freed. Hash tables that are probed are never full. Nodes
point to nodes with smaller numbers. For all other loops a comment names the quantity that grows or decreases.

An argument of one name has one meaning, unless a kernel says otherwise. Numbers are integers; -1 means none.

The match graph:

- ``nodes``: int64 (nodes, `NODE_WORDS` or `LIST_NODE_WORDS`), columns W_…; ``small`` is the same memory as int32,
  columns I_…. ``root``, ``child`` and ``old`` are numbers of nodes.
- ``marks``: int64 (marks, 2), columns M_…; ``mark`` is the number of a mark, ``label`` the number of a label set.
- ``detections``: int64 (detections, 4), columns D_….
- ``measure`` and ``bound``: int64, in the unit of the window: events, the time unit of the stream, or the order of an
  attribute's values (`cerflow.engine.evaluate.measures`). Starts at or before the bound are outside the window.
- ``stack``: int32, room for the numbers of nodes yet to visit.

The state and the step:

- ``address``: the address of the `SharedArrays`; ``state``, ``tables``, ``scratch``, ``ranking`` and ``events`` are its
  groups of arrays, and ``classes``, ``counters``, ``partition``, ``covers`` and ``updates`` are arrays of these. Their
  types and shapes are in `cerflow.engine.layout`.
- ``k``: an event of the batch; ``position``: its int64 position in the stream; ``place``: its position in the
  substream, if positions are counted there, else in the stream.
- ``p``: a partition; ``q``: a state; ``c``: a configuration; ``cls``: a class; ``n``: updates; ``h``: an int64 hash.
- ``registers``, ``row`` and ``key``: pointers to the 64-bit words of one member, one row of a collection, one partition
  key. ``states`` and ``values``: pointers to the int32 states of ``count`` members, and to their registers, one row of
  the array for each.
"""
