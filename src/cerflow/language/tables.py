"""Where the tables of the parsers are kept, because to make them takes longer than most queries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["kept_tables"]


def kept_tables(name: str) -> str | bool:
    """A file of the user's for the tables of a parser (see Lark's option ``cache``), or False if there is no place.

    It lies in ``$CERFLOW_CACHE_DIR``, else in the user's folder for caches. Lark makes it anew for another grammar.
    """
    folder = os.environ.get("CERFLOW_CACHE_DIR")
    if not folder:
        base = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
        try:
            folder = str((Path(base) if base else Path.home() / ".cache") / "cerflow")
        except RuntimeError:  # there is no home
            return False
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    if not os.access(folder, os.W_OK):
        return False
    # Processes of other versions of Python keep their own.
    return str(Path(folder) / f"{name}-{sys.version_info.major}{sys.version_info.minor}.tables")
