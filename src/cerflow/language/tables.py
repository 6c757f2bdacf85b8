"""Where the tables of the parsers are kept, because to make them takes longer than most queries."""

from __future__ import annotations

import sys

from cerflow.cache_folder import cache_folder

__all__ = ["kept_tables"]


def kept_tables(name: str) -> str | bool:
    """A file for the tables of a parser (see Lark's option ``cache``), or False if there is no place.

    It lies in the folder for caches. Lark makes it anew for another grammar, and if it is damaged.
    """
    folder = cache_folder()
    if folder is None:
        return False
    # Processes of other versions of Python keep their own.
    return str(folder / f"{name}-{sys.version_info.major}{sys.version_info.minor}.tables")
