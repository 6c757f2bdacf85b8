"""Slices of a stream that are recognised in parallel: whether a query allows them, and where to cut.

`division` decides; `cutting` has the arithmetic, for partitions and row groups; `threads` recognises in all slices of a
table.
"""
