"""Interleaved runs: in every run each engine has its turn at each case, so that a machine that slows down slows all."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.cases import Case, Mode, Point
from benchmarks.engines import Engine, laid_out
from benchmarks.processes import OverLimitError, ProcessDiedError

__all__ = ["DIFFER", "IDLE", "OVER", "Row", "check_questions", "measure"]

#: The status of a row whose engine took longer than the limit.
OVER = "over the limit"

#: How the note of a row begins whose number of matches is another than that of an equal question, unexplained.
DIFFER = "numbers of matches differ"

#: How the note of a row begins whose number of matches says that its case asks nothing.
IDLE = "tells nothing"

#: The modes that have a row for each detecting event.
_OF_EVENTS = ("detect", "aggregate", "first", "sample")

#: What else of an answer is kept.
_DETAILS = ("compile", "course", "live", "bytes", "gather", "enumeration", "remembered", "where")

#: Seconds beyond the limit for what an engine does before it is timed, and in which it may say itself that it is over
#: the limit, which spares starting it again.
_GRACE = 4.0

#: Seconds in which the events of a stream are made.
_LOADING = 600


@dataclass
class Row:
    """What was measured of one engine (``engine``) at one case, in one mode.

    ``seconds`` are those of every run, ``processor`` what all threads of the process used; ``floor`` the least seconds
    of a NumPy pass over the columns that the query reads; ``peak_mb`` the most memory that the engine's process had,
    and ``own_mb`` the same without the events and what was there before (for cerflow).
    ``status`` is ``ok``, ``over the limit``, or what went wrong; ``checked`` whether the number of matches is equal
    to the peer's, None where nobody can tell.
    """

    suite: str
    case: str
    engine: str
    mode: str
    query: str
    tags: list[str]
    point: Point | None = None
    events: int | None = None
    matches: str | None = None
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    floor: float | None = None
    peak_mb: float | None = None
    own_mb: float | None = None
    status: str = "ok"
    checked: bool | None = None
    #: What is to be known of the figure, such as why a number of matches differs.
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> float | None:
        """The seconds of the fastest run."""
        return min(self.seconds, default=None)

    @property
    def least_processor(self) -> float | None:
        """The least processor time of the runs."""
        return min(self.processor, default=None)

    @property
    def median(self) -> float | None:
        """The median of the runs' seconds."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def wrong(self) -> bool:
        """Whether numbers of matches differ without an explanation, or tell nothing, or cerflow failed."""
        failed = self.engine.startswith("cerflow") and self.status not in ("ok", OVER)
        return failed or self.note.startswith((DIFFER, IDLE))

    def rate(self, seconds: float | None) -> float | None:
        """Events per second, if it took this many seconds."""
        return self.events / seconds if self.events and seconds else None

    def as_dict(self) -> dict[str, Any]:
        """The row with what follows from it, as plain data."""
        best, median = self.best, self.median
        return {
            **asdict(self),
            "best": best,
            "median": median,
            "events_per_second": self.rate(best),
            "events_per_second_median": self.rate(median),
            "times_floor": best / self.floor if best and self.floor else None,
        }


def measure(
    cases: Sequence[Case],
    engines: Sequence[Engine],
    *,
    runs: int,
    limit: float,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Rows of all cases for cerflow's engines and the cases' peers among ``engines``.

    Peers have one mode each; most write all matches. An engine that goes over the limit (seconds for one question),
    or fails, has no further turn at that case. Processes are ended when all is done.
    """
    rows: dict[tuple[int, str, str], Row] = {}
    #: Families of cases that were too hard for a peer.
    too_hard: set[tuple[str, str]] = set()
    ours = _ours(cases, engines)
    try:
        for run in range(runs):
            for number, case in enumerate(cases):
                if run >= case.runs:
                    continue
                tell(f"run {run + 1} of {runs}: {case.suite}, {case.name}")
                for engine, mode in _turns(case, engines, ours):
                    row = rows.setdefault((number, engine.name, mode), _row(case, engine, mode))
                    peer = case.peer(engine.name)
                    family = peer.family if peer is not None else None
                    if family and (engine.name, family) in too_hard and not row.seconds:
                        row.status = OVER
                    elif row.status == "ok":
                        _ask(row, case, engine, mode, limit)
                        if row.status == OVER and family is not None:
                            too_hard.add((engine.name, family))
                if ours:
                    _floor(rows, number, case, ours[-1])
    finally:
        for engine in engines:
            engine.stop()
    _check(cases, rows)
    check_questions(cases, list(rows.values()))
    return list(rows.values())


def _ours(cases: Sequence[Case], engines: Sequence[Engine]) -> list[Engine]:
    """The engines that are nobody's peer."""
    peers = {peer.engine for case in cases for peer in case.peers}
    return [engine for engine in engines if engine.name not in peers]


def _turns(case: Case, engines: Sequence[Engine], ours: Sequence[Engine]) -> list[tuple[Engine, Mode]]:
    """Who is asked at a case, and in which mode."""
    chosen = [engine for engine in ours if engine.layout is None or engine.layout in case.layouts]
    turns: list[tuple[Engine, Mode]] = [(engine, mode) for engine in chosen for mode in case.modes]
    return turns + [(engine, peer.mode) for engine in engines if (peer := case.peer(engine.name)) is not None]


def _row(case: Case, engine: Engine, mode: str) -> Row:
    return Row(case.suite, case.name, engine.name, mode, case.query, sorted(case.tags), case.point)


def _ask(row: Row, case: Case, engine: Engine, mode: Mode, limit: float) -> None:
    try:
        worker = engine.worker
        if engine.layout is not None:
            # Making the events is no part of the question, so the limit is not for it.
            worker.ask(json.dumps({"stream": laid_out(case, engine.layout), "columns": []}), _LOADING)
        worker.forget_peak()
        answer = worker.ask(engine.line(case, mode, limit), limit + _GRACE)
    except OverLimitError:
        engine.stop()
        row.status = OVER
        return
    except ProcessDiedError as death:
        engine.stop()
        row.status = f"died: {death}"
        return
    if "error" in answer:
        row.status = answer["error"]
        if row.status == "out of memory":
            engine.stop()
        return
    if answer["seconds"] > limit:
        # As it is here, the number is told; but there are no more runs.
        row.status = OVER
    peak = worker.peak()
    if peak is not None:
        row.peak_mb = max(row.peak_mb or 0.0, peak)
    if answer.get("memory") is not None:
        row.own_mb = max(row.own_mb or 0.0, answer["memory"])
    found = str(answer["matches"])
    if row.matches not in (None, found):
        row.status = f"not the same number of matches in all runs: {row.matches}, then {found}"
    row.matches = found
    row.events = answer.get("events", worker.greeting.get("events"))
    row.seconds.append(answer["seconds"])
    if "processor" in answer:
        row.processor.append(answer["processor"])
    row.details = {name: answer[name] for name in _DETAILS if name in answer}


def _floor(rows: dict[tuple[int, str, str], Row], number: int, case: Case, engine: Engine) -> None:
    """What a pass over the columns takes now, for all rows of the case."""
    request = {"stream": laid_out(case, "encoded"), "columns": case.columns}
    try:
        seconds = engine.worker.ask(json.dumps(request), _LOADING)["seconds"]
    except (OverLimitError, ProcessDiedError):
        engine.stop()
        return
    for (other, _, _), row in rows.items():
        if other == number:
            row.floor = min(seconds, row.floor or seconds)


def _check(cases: Sequence[Case], rows: dict[tuple[int, str, str], Row]) -> None:
    """Compare the numbers of matches that the engines, layouts and modes of a case gave, and those of detections."""
    for number, case in enumerate(cases):
        answered = [row for (other, _, _), row in rows.items() if other == number and row.matches is not None]
        told = [row for row in answered if row.mode not in _OF_EVENTS]
        detected = [row for row in answered if row.mode in _OF_EVENTS]
        if len({row.matches for row in detected}) > 1:
            for row in detected:
                row.checked = False
                row.note = f"{DIFFER}: " + ", ".join(f"{other.engine} {other.matches}" for other in detected)
        numbers = {row.matches for row in told}
        by = {row.engine for row in told}
        for row in told:
            if len(numbers) > 1:
                row.checked = False
                row.note = _explained(case, told) or f"{DIFFER}: " + ", ".join(
                    f"{other.engine} {other.mode} {other.matches}" for other in told
                )
            elif len(by) > 1 and any(case.peer(engine) for engine in by):
                row.checked = True


def check_questions(cases: Sequence[Case], rows: Sequence[Row]) -> None:
    """Note in rows whether cases that ask something have matches, as many as the same question, not those of another.

    Cases that were measured apart can be checked together.
    """
    by_name = {(case.suite, case.name): case for case in cases}
    where = {(row.suite, row.case): row.details.get("where") for row in rows if row.mode == "detect"}
    asked = [
        (case, row, where.get((row.suite, row.case)))
        for row in rows
        if (case := by_name[row.suite, row.case]).question and row.mode not in _OF_EVENTS and row.matches
        if row.engine.startswith("cerflow")
    ]
    for one in asked:
        problem = _problem(*one, asked)
        if problem:
            one[1].note = problem


def _problem(case: Case, row: Row, where: int | None, asked: Sequence[tuple[Case, Row, int | None]]) -> str | None:
    """What is wrong with the matches of a case that asks something; ``where`` they are detected, if that is known."""
    if row.matches == "0":
        return None if case.empty else f"{IDLE}: no match"
    if case.empty:
        return f"{DIFFER}: {row.matches}, but none was expected, as {case.empty}"
    for other, theirs, there in asked:
        if case.question is None or other.question is None or other.stream != case.stream:
            continue
        common = sum(a == b for a, b in zip(case.question, other.question))
        if common == 2 and theirs.matches != row.matches:
            return f"{DIFFER}: {row.case} {row.matches}, {theirs.case} {theirs.matches}"
        if common == 1 and theirs.matches == row.matches and (where is None or there is None or where == there):
            return f"{IDLE}: as many matches as {theirs.case}"
    return None


def _explained(case: Case, told: Sequence[Row]) -> str | None:
    """Why the numbers of matches may differ, if only peers differ that are known to."""
    known = {peer.engine: peer.differs for peer in case.peers if peer.differs}
    if len({row.matches for row in told if row.engine not in known}) > 1:
        return None
    return "; ".join(known.values()) or None
