"""The scan: the rows of a batch of Arrow, read where they are, become the events that are relevant.

The arrays of a scan are described in `cerflow.engine.scan.layout`. ``s`` is the group `ScanArrays`; ``columns``,
``texts`` and ``outcomes`` are arrays of it, and ``c`` and ``t`` are numbers of a column and of a column of text.

- ``batch``: the address of an array of Arrow's C data interface, one with a child for every column.
- ``row``: a row of the batch, from 0 on; ``end``: the row after the last one; ``count``: a number of rows.
- ``first``: the position of row 0 in the stream.
- ``data``: the address of values, ``at`` the number of the one that is meant; ``kind``: how they lie there (see the
  layout).
- ``entry``: the entry of a text; ``number``: a condition on a text.
- ``start`` and ``stop``: the first instruction of a program, and the one after the last.
- ``node`` and ``outcome``: what was asked, and the answer.
"""
