"""Kernels of one event: guards, programs, transitions, and the updates that they cause.

Beside the arguments that all kernels have (`cerflow.engine.kernels`): ``members`` is the number of members of the
updates in the scratch, ``removed`` that of the configurations to drop there.
"""
