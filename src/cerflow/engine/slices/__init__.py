"""Slices of a stream that are recognised in parallel: whether a query allows them, and where to cut.

`division` decides; `by_keys` has the arithmetic, and `by_row_groups` applies it to files; `threads` recognises in all
slices of a table.
"""
