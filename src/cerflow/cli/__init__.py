"""The command line: ``cerflow run``, ``check``, ``explain``, ``generate`` and ``warmup`` (spec §8).

Matches go to files or standard output, messages to standard error. Nothing in cerflow may import this room.
"""

from __future__ import annotations

from cerflow.cli.app import main

__all__ = ["main"]
