"""The command line: ``cerflow run``, ``check``, ``explain``, ``generate`` and ``warmup`` (spec §8).

Arguments come in; rows go to files or standard output, everything said to people to standard error. Nothing in
cerflow may import this room.
"""

from __future__ import annotations

from cerflow.cli.app import main

__all__ = ["main"]
