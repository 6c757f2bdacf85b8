"""Slices of a stream that are recognised in parallel: whether a query allows them, where to cut, and how one is run.

`division` decides; `slice`, `pieces` and `lookback` hold the arithmetic, `by_keys` and `by_row_groups` find the slices;
`runner` recognises one of them, and `threads` does all of them over a table.
"""
