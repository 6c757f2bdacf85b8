"""What rows of a batch say together: those that follow each other, that wait for each other, or that nothing follows.

- ``s``: the group `ScanArrays`; ``batch``: the address of an array of Arrow's C data interface.
- ``row`` and ``other``: rows of the batch, from 0 on; ``count``: a number of rows.
- ``entry`` and ``entries``: an event that matches wait in, by its number, and the address of all of these (`opened`).

All else is as in `cerflow.engine.kernels.scan`.
"""
