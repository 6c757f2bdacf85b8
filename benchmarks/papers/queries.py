"""The queries of the papers as files below ``queries``; ``python -m benchmarks.papers.queries`` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.suites.cel import QUERIES
from benchmarks.suites.srt import PATTERNS
from benchmarks.suites.srt_streams import SMART_HOMES, TAXIS

__all__ = ["FOLDER", "query_files"]

FOLDER = Path(__file__).with_name("queries")
#: The patterns on each stream, and their windows in the paper; those of queries on ticks are twice as long.
_STREAMS = {"stocks": (PATTERNS, 500), "smart_homes": (SMART_HOMES, 5), "taxis": (TAXIS, 100)}


def query_files() -> Iterator[tuple[Path, str]]:
    """Each file below the folder, and what stands in it."""
    for name, formula in QUERIES.items():
        yield Path("logic", f"{name}.ceql"), f"SELECT * WHERE {formula}\n"
    for stream, (patterns, window) in _STREAMS.items():
        for kind, named in patterns.items():
            for name, pattern in named.items():
                within = 2 * window if kind == "q" else window
                yield Path(stream, f"{name}.ceql"), pattern.cel(within) + "\n"
                yield Path(stream, f"{name}.sremo"), pattern.sremo(within) + "\n"


if __name__ == "__main__":
    for file, text in query_files():
        (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / file).write_text(text, "utf-8")
