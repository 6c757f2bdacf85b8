"""Slices of a stream that are recognised side by side: whether a query allows them, where to cut, and how one is run.

`division` decides; `slice`, `pieces`, `reach` and `by_keys` find the slices; `runner` recognises one of them, and
`threads` does all of them over a table.
"""
