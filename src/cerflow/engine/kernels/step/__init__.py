"""Kernels of one event: guards, programs, transitions, and the updates that they cause."""
