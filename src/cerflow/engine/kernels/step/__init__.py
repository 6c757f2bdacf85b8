"""Kernels of one event: programs, transitions, and the updates that they cause.

Arguments besides those in `cerflow.engine.kernels`: ``members`` is the number of members of the updates in the scratch,
``removed`` the number of configurations to drop there.
"""
