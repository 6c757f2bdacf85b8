"""Esper: its compiler and runtime from Maven Central, fed by a small Java program of ours."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.cases import Case, Mode
from benchmarks.engines import Engine, UnavailableError
from benchmarks.peers.java import run_tool, started
from benchmarks.processes import Worker
from benchmarks.streams import TickFiles

__all__ = ["STATEMENTS", "esper_engine"]

_VERSION = "8.9.0"
_SOURCES = Path(__file__).with_name("esper")
_DEPENDENCY = """
<dependency><groupId>com.espertech</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
"""
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>cerflow</groupId><artifactId>peers</artifactId><version>1</version>
<dependencies>{}</dependencies>
</project>"""


def _sequence(*steps: str) -> str:
    """Every combination of events of three steps in a window of time, as EPL calls its patterns."""
    first, second, third = (f"every {label}=Tick({step})" for label, step in zip("abc", steps))
    within = "where timer:within({window} milliseconds)"
    return f"select a.time from pattern [{first} -> (({second} -> {third}) {within})]"


def _rows(pattern: str, define: str, partition: str = "") -> str:
    head = f"select * from Tick match_recognize ({partition} measures 1 as found "
    return f"{head} {pattern} define {define})"


_SELL, _BUY, _INTC = "type='SELL'", "type='BUY'", "name='INTC'"
_NEXT = f"every a=Tick({_SELL}, {_INTC}) -> b=Tick({_BUY}, name='RIMM') -> c=Tick({_BUY}, name='QQQ')"
_ABC = "all matches after match skip to next row pattern (A B C)"
_V = ("B.price < A.price", "C.price < B.price", "D.price > C.price", "E.price > D.price")
#: The questions in EPL, by the names of the queries.
STATEMENTS = {
    "sequence": _sequence(f"{_SELL}, {_INTC}", f"{_BUY}, name='RIMM'", f"{_BUY}, name='QQQ'"),
    "rise3": _sequence(f"{_SELL}, {_INTC}", f"{_BUY}, {_INTC}, price > a.price", f"{_BUY}, {_INTC}, price > b.price"),
    "next": f"select a.time from pattern [{_NEXT}]",
    "strict": _rows(_ABC, f"A as A.{_SELL}, B as B.{_BUY}, C as C.{_SELL}"),
    "strict, name": _rows(
        _ABC,
        ", ".join(f"{x} as {x}.{kind} and {x}.{_INTC}" for x, kind in zip("ABC", (_SELL, _BUY, _SELL))),
    ),
    "v": _rows(
        "all matches after match skip to next row pattern (A B C D E)",
        ", ".join(f"{condition[0]} as {condition}" for condition in _V),
        "partition by name",
    ),
    "turns, max, consumed": _rows(
        "after match skip past last row pattern (A D+ U)",
        "D as D.price < prev(D.price), U as U.price > prev(U.price)",
        "partition by name",
    ),
}


def esper_engine(cache: Path, folder: Path, files: TickFiles, *, fetch: bool = True) -> Engine:
    """Esper on the ticks of CSV files.

    Raises `UnavailableError` without Java, or if its jars are not in the cache and may not be fetched, or cannot be.
    """
    command = started(_SOURCES, _jars(cache, fetch=fetch), cache / "esper-classes")
    return Engine("Esper", lambda: Worker(command, folder=folder), lambda *asked: _line(files, *asked))


def _line(files: TickFiles, case: Case, mode: Mode, limit: float) -> str:
    request = case.request("Esper")
    if request["question"] == "rows":
        statement = _rows(f"all matches pattern ({request['pattern']})", ", ".join(request["define"]))
    elif request["question"] == "statement":
        statement = request["statement"]
    else:
        statement = STATEMENTS[request["question"]].format(window=request.get("window"))
    times = str(case.stream.arguments.get("times", 1))
    return "\t".join([str(files.path(case.stream)), str(limit), times, statement])


def _jars(cache: Path, *, fetch: bool) -> list[Path]:
    """The jars, fetched by Maven on first use."""
    folder = cache / f"esper-{_VERSION}"
    if not folder.exists():
        maven = shutil.which("mvn")
        if not fetch or maven is None:
            raise UnavailableError(f"Esper {_VERSION} is not here" + (", nor Maven to fetch it" if fetch else ""))
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            project, jars = Path(temporary, "pom.xml"), Path(temporary, "jars")
            parts = (_DEPENDENCY.format(name, _VERSION) for name in ("esper-compiler", "esper-runtime"))
            project.write_text(_PROJECT.format("".join(parts)))
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
            run_tool([maven, "--quiet", "--batch-mode", "--file", project, *goal], f"Esper {_VERSION}")
            jars.rename(folder)
    return sorted(folder.glob("*.jar"))
