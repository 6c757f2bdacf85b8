"""The figures of the papers: which cases they are, and the numbers that can be read from the papers.

P1 is the paper on complex event logic (§8), 004 the one on symbolic register transducers (§7). Throughputs of 004 are
read from its plots, to about one in a hundred. P1's figures 4 and 5 are images, of which only the text tells numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.suites.cel import LENGTHS, QUERIES
from benchmarks.suites.determinism import COPIES, DETERMINISED, WINDOWS

__all__ = ["FIGURES", "Figure", "Measure", "place_and_form"]

#: Events per second; seconds; µs for an event; seconds of listing matches alone; MB remembered before the last event.
Measure = Literal["rate", "seconds", "each", "enumeration", "remembered"]
#: What the names of cases end with that put the question of another case in another form.
_FORMS = (", SREMO", DETERMINISED, COPIES)


@dataclass(frozen=True)
class Figure:
    """A chart: a case for each place on its axis, and for each system in the paper the numbers at these places."""

    key: str
    title: str
    axis: str
    #: The places on the axis, and the names of their cases.
    places: Mapping[str, str]
    measure: Measure = "rate"
    paper: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    #: What else the paper says.
    note: str = ""
    #: The modes of cerflow that it shows.
    modes: tuple[str, ...] = ("count", "write", "detect")

    def part(self, place: str) -> str:
        """The part of the chart that a place belongs to: lines join the places of one part, as of one window."""
        ends = ":" if ":" in self.axis else "," if self.axis.startswith("query") else None
        return place.partition(ends)[0] if ends else ""


def place_and_form(case: str) -> tuple[str, str]:
    """The name of the case as figures have it, and the form in which it puts the question, which may be empty."""
    form = next((form for form in _FORMS if case.endswith(form)), "")
    return case.removesuffix(form), form


_LENGTHS = (3, 6, 9, 12)
_TERMINALS = (4, 8, 12, 16)
_NAMES = {"stock": "{}, {} ms", "smart": "smart homes: {}, {} s", "taxis": "taxis: {}, {} s"}
_TITLES = {"stock": "stock ticks", "smart": "smart homes", "taxis": "taxi trips"}
_UNITS = {"stock": "ms", "smart": "s", "taxis": "s"}
_NARROWEST = {"stock": 500, "smart": 5, "taxis": 100}
_SYSTEMS = ("Wayeb", "Esper", "SASE", "FlinkCEP")

#: Figure 6: hundred thousand events a second by length, for each of the systems.
_FIGURE_6 = {
    "stock": ((12.4, 13.7, 14.2, 13.6), (9.3, 9.1, 8.7, 8.7), (1.8, 1.2, 1.3, 1.2), (0.41, 0.44, 0.36, 0.53)),
    "smart": ((18.5, 13.3, 13.1, 13.0), (12.7, 13.8, 12.8, 11.1), (7.9, 0.01, 0.01, 0.01), (3.6, 3.1, 2.1, 2.6)),
    "taxis": ((14.7, 14.7, 13.5, 14.4), (6.3, 5.8, 5.7, 4.8), (0.73, 0.05, 0.05, 0.05), (1.2, 1.0, 1.1, 1.1)),
}
_MEMORY_6 = {
    "stock": "MB in the paper: Wayeb 4.1, Esper 7.2, SASE 2.6 to 2.7, FlinkCEP 226 to 231, at all lengths.",
    "smart": "MB in the paper: Wayeb 3.5, Esper 7.2, SASE 1.1 to 1.3, FlinkCEP 50 to 54, at all lengths.",
    "taxis": "MB in the paper: Wayeb 3.6, Esper 7.6, SASE 1.2 to 1.3, FlinkCEP 86 to 89, at all lengths.",
}
#: Figure 7: the same by window, which come first.
_FIGURE_7 = {
    "stock": (
        (500, 1000, 2000, 5000, 10_000, 30_000),
        (12.4, 10.6, 7.1, 3.0, 1.4, 0.18),
        (9.3, 6.8, 4.5, 2.3, 1.15, 0.24),
        (1.8, 1.7, 1.3, 0.63, 0.27, 0.05),
        (0.40, 0.54, 0.42, 0.27, 0.15, None),
    ),
    "smart": (
        (5, 10, 50, 100, 500),
        (18.5, 16.0, 2.0, 0.68, 0.01),
        (12.7, 12.0, 3.25, 1.28, 0.15),
        (7.9, 2.1, 0.24, 0.15, 0.01),
        (3.6, 3.15, 0.71, 0.20, None),
    ),
    "taxis": (
        (100, 200, 400, 1000, 10_000),
        (14.7, 9.0, 3.9, 0.88, 0.01),
        (6.25, 3.9, 2.7, 0.87, 0.01),
        (0.72, 0.32, 0.15, 0.07, None),
        (1.2, 0.90, 0.51, 0.14, None),
    ),
}
_MEMORY_7 = {
    "stock": "MB, from 500 ms to 30 s: Wayeb 4.1 to 7.1, Esper 7.2, SASE 2.7 to 113, FlinkCEP 226 to 4,940.",
    "smart": "MB, from 5 s to 500 s: Wayeb 3.5 to 24, Esper 7.2 to 9.1, SASE 1.3 to 67.6, FlinkCEP 50 to 4,840.",
    "taxis": "MB, from 100 s to 10,000 s: Wayeb 3.6 to 7.5, Esper 7.6 to 46, SASE 1.3 to 3.1, FlinkCEP 89 to 3,040.",
}
#: Figure 8: Wayeb and Esper by length.
_FIGURE_8 = {
    "stock": ((1.28, 1.10, 1.12, 1.20), (0.33, 0.29, 0.22, 0.19)),
    "smart": ((17.1, 7.6, 7.2, 6.3), (8.3, 2.9, 2.5, 2.9)),
    "taxis": ((13.0, 13.1, 13.4, 12.5), (1.62, 1.43, 1.42, 1.43)),
}
#: Figure 9: Wayeb by terminals, for each window. None where the plot shows nearly nothing.
_FIGURE_9: dict[str, dict[int, tuple[float | None, ...]]] = {
    "stock": {
        500: (11.1, 10.9, 10.6, 10.5),
        1000: (9.0, 6.5, 5.7, 5.5),
        2000: (5.6, 2.7, 1.2, 0.7),
        5000: (2.3, 0.29, 0.03, 0.03),
        10_000: (0.82, 0.01, 0.01, 0.01),
        30_000: (0.10, None, None, None),
    },
    "smart": {
        5: (19.4, 17.6, 17.5, 16.7),
        10: (18.8, 11.5, 10.2, 11.2),
        20: (16.2, 3.5, 3.3, 3.3),
        30: (15.5, 1.1, 1.1, 1.0),
        40: (14.4, 0.5, 0.45, 0.5),
    },
    "taxis": {
        100: (14.3, 13.9, 13.9, 13.7),
        200: (8.4, 7.5, 7.7, 7.7),
        300: (5.9, 4.8, 4.4, 4.4),
        400: (3.9, 2.7, 2.3, 2.0),
        500: (2.9, 1.8, 1.2, 0.9),
        1000: (0.96, 0.32, 0.01, None),
    },
}
#: Figure 10: q1 to q5 within a second, for each of the systems.
_FIGURE_10 = (
    (9.7, 13.9, 5.6, 10.5, 9.3),
    (6.5, 8.85, 3.9, 8.0, 3.8),
    (0.73, 0.03, None, None, None),
    (0.41, 0.39, 0.50, 0.39, None),
)


def _rates(*systems: tuple[float | None, ...]) -> dict[str, tuple[float | None, ...]]:
    """Events per second for each system, from hundred thousands."""
    return {name: tuple(v and 1e5 * v for v in values) for name, values in zip(_SYSTEMS, systems)}


def _registers() -> Iterator[Figure]:
    """The figures of 004."""
    for key, name in _NAMES.items():
        narrow, title, unit = _NARROWEST[key], _TITLES[key], _UNITS[key]
        places = {str(n): name.format(f"seq{n}", narrow) for n in _LENGTHS}
        within = f"within {narrow} {unit}"
        rates = _rates(*_FIGURE_6[key])
        yield Figure(
            f"004-6-{key}",
            f"004, Figure 6: sequences, {title}, {within}",
            "steps",
            places,
            "rate",
            rates,
            _MEMORY_6[key],
        )
        windows, *systems = _FIGURE_7[key]
        places = {str(w): name.format("seq3", w) for w in windows}
        title_7 = f"004, Figure 7: three steps, {title}"
        yield Figure(f"004-7-{key}", title_7, f"window ({unit})", places, "rate", _rates(*systems), _MEMORY_7[key])
        places = {str(n): name.format(f"kleene{n}", narrow) for n in _LENGTHS}
        note = "SASE and FlinkCEP find other matches of iterations, says the paper, and are not in its figure."
        title_8 = f"004, Figure 8: iterations, {title}, {within}"
        yield Figure(f"004-8-{key}", title_8, "steps", places, "rate", _rates(*_FIGURE_8[key]), note)
        pairs = [(n, w) for w in _FIGURE_9[key] for n in _TERMINALS]
        places = {f"{w}: {n}": name.format(f"nested{n}", w) for n, w in pairs}
        flat = tuple(value for values in _FIGURE_9[key].values() for value in values)
        title_9 = f"004, Figure 9: nested iterations, {title}"
        yield Figure(f"004-9-{key}", title_9, f"window ({unit}): terminals", places, "rate", _rates(flat))
    places = {q: f"{q}, 1000 ms" for q in ("q1", "q2", "q3", "q4", "q5")}
    yield Figure(
        "004-10", "004, Figure 10: queries, stock ticks, within 1000 ms", "query", places, "rate", _rates(*_FIGURE_10)
    )
    places = {str(window): f"three ticks, {window} events" for window in WINDOWS}
    note = (
        "The paper proves that a transducer within a window can be determinised, and has no figure of it. All forms "
        "count the events that complete a match. The determinised one has a run from each event. The staggered copies, "
        "as many as the window has events, have one run on the whole stream, and five times as many states for each "
        "event more."
    )
    yield Figure(
        "004-s6", "004, section 6: three ticks, microseconds for an event", "window (events)", places, "each", note=note
    )


_IMAGE = (
    "The paper's figure is an image. Its text tells numbers of Q2 at 2,000 events alone, some of them as bounds: "
    "CEL took less than 0.01 s, and Esper more than 10 GB. Other engines list matches as they find them, so that their "
    "seconds include the listing."
)


#: Windows of Figure 5 in events; the paper has none.
_WINDOWS = {"": "", ", 20": ", window of 20", ", 100": ", window of 100"}
_STRATEGIES = (
    "The paper's figure is an image. Its text tells no numbers, but that MAX is faster than NEXT, and LAST and MAX are "
    "faster than all matches. The paper has no windows here; those of 20 and 100 events are ours. "
)
_ONLY_ALL = "CORE writes one match of each detecting event. Esper and FlinkCEP would list all matches."
#: How many matches of Q1 a strategy leaves in ABCBC.
_LEFT = {"NEXT": "two", "LAST": "two", "MAX": "three"}
_OTHERS = (
    "No other engine has this strategy. CORE takes the word {0}, but gives all matches. Esper without `all matches`, "
    "as the paper asks it, and FlinkCEP and SASE with skip-till-next-match choose by the first event of a match, and "
    "{0} by the last one: in ABCBC Esper finds one match of Q1, and {0} leaves {1}."
)


def _logic() -> Iterator[Figure]:
    """The figures of P1."""
    nothing = (None,) * (len(LENGTHS) - 1)
    for query, told in (("Q1", {}), ("Q2", {"CEL": 0.01, "SASE": 678.3})):
        places = {str(n): f"stress {query}, {n:,} events" for n in LENGTHS}
        numbers = {name: (*nothing, value) for name, value in told.items()}
        title = f"P1, Figure 4: {query}, seconds until the last event is read"
        key = f"p1-4-{query.lower()}"
        yield Figure(key, title, "events", places, "seconds", numbers, _IMAGE, ("apart",))
        memory = {"CEL": (*nothing, 5.0), "SASE": (*nothing, 1000.0), "Esper": (*nothing, 10_000.0)}
        title = f"P1, Figure 4: {query}, MB remembered before the last event"
        yield Figure(f"{key}-memory", title, "events", places, "remembered", memory if told else {}, _IMAGE, ("apart",))
        listing = {"CEL": (*nothing, 5.2)} if told else {}
        title = f"P1, Figure 4: {query}, seconds in which all matches are listed"
        yield Figure(f"{key}-listing", title, "events", places, "enumeration", listing, _IMAGE, ("apart",))
    yield Figure(
        "p1-table-2",
        "P1, Table 2: seconds for a million events (µs for one) of four types, everything forgotten at a match",
        "query",
        {query: f"consume {query}" for query in QUERIES},
        "each",
        {
            "Esper": (1.84, 3.91, 2.21, 166.09, 3600.0, 3600.0),
            "SASE": (0.88, 1.48, None, 4.08, 177.02, None),
            "CEL": (0.27, 0.28, 0.27, 0.21, 0.26, 0.24),
        },
        "3600: over the paper's limit of an hour. It does not say how many types there are.",
    )
    for shares in ("S1", "S2"):
        for strategy in ("ALL", "NEXT", "LAST", "MAX"):
            places = {
                query + short: f"{strategy} {query}, {shares}{window}"
                for query in QUERIES
                for short, window in _WINDOWS.items()
            }
            title = f"P1, Figure 5: {strategy}, distribution {shares}, one match of each detecting event"
            note = _STRATEGIES + (_OTHERS.format(strategy, _LEFT[strategy]) if strategy in _LEFT else _ONLY_ALL)
            yield Figure(f"p1-5-{shares.lower()}-{strategy.lower()}", title, "query, window", places, note=note)


#: All figures, in the order of the page.
FIGURES: tuple[Figure, ...] = (*_registers(), *_logic())
