"""The suite *cel*: the queries Q1 to Q6 of the paper on complex event logic, on random streams of a few types.

Three experiments: stress (no match before the last event, which completes them all), consumption (everything begun is
forgotten at a match), and selection strategies (two distributions of types, without a window as in the paper, and in
windows of growing size).
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.cases import Case, Mode, Peer, Point, Question, Scale, Stream

__all__ = ["LENGTHS", "QUERIES", "cases"]

QUERIES = {
    "Q1": "A AS x ; B AS y ; C AS z",
    "Q2": "A AS x ; B AS y ; C AS z ; D AS w",
    "Q3": "((A AS x OR B AS y) OR C AS z) ; D AS w",
    "Q4": "(A AS x)+ ; (B AS y)",
    "Q5": "(A AS x)+ ; (B AS y)+ ; C AS z",
    "Q6": "((A AS x)+ ; (B AS y))+ ; C AS z",
}
#: In Esper's words, which are those of the paper, appendix E; S is any event.
_ROWS = {
    "Q1": "A S* B S* C",
    "Q2": "A S* B S* C S* D",
    "Q3": "(A | B | C) S* D",
    "Q4": "A (A | S)* B",
    "Q5": "A (A | S)* B (B | S)* C",
    "Q6": "A (A | S)* B ((A (A | S)* B) | S)* C",
}
#: The lengths of the streams of the stress experiment.
LENGTHS = tuple(range(200, 2001, 200))
#: The types of the streams of the stress experiment; the last one completes the matches.
_STRESS = {"Q1": "A,B,C", "Q2": "A,B,C,D"}
#: The distributions of the strategies' experiment; the second one's shares are the paper's, which sum to 1.2.
_SHARES = {"S1": "1,1,1,1,1", "S2": "4,3,2,1,2"}
#: Milliseconds that no stream lasts, for engines that want a window.
_FOREVER = 10**12
_STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
#: Events in the windows in which NEXT, LAST and MAX are compared with ALL.
_WINDOWS = (20, 100, 1_000, 10_000)
#: The widest of them whose matches are few enough to be written.
_WRITABLE = 100


def cases(scale: Scale) -> list[Case]:
    """The cases of the suite."""
    return [*_stress(scale), *_consumption(scale), *_strategies(scale)]


def _stress(scale: Scale) -> list[Case]:
    """No match before the last event: first the paper's short streams, then long ones, whose matches are counted."""
    found = []
    short = (200, 1000) if scale.quick else LENGTHS
    for name, types in _STRESS.items():
        for events in (*short, scale.events):
            # The completing type occurs at the end alone; E, of which the query knows nothing, takes its share.
            weights = ",".join(["1"] * (len(types.split(",")) - 1) + ["0", "1"])
            arguments = {"types": f"{types},E", "weights": weights, "last": types[-1]}
            stream = Stream("synthetic", {"events": events, **arguments})
            modes: tuple[Mode, ...] = ("count", "apart") if events in short else ("count",)
            text = f"SELECT * WHERE {QUERIES[name]}"
            # Millions of matches are to be written.
            runs = 2 if events >= 1000 else 100
            point = Point("events", events, f"stress {name}")
            peers = _peers(name) if events in short else ()
            case = _case(f"stress {name}, {events:,} events", text, stream, modes, point, runs, peers)
            found.append(replace(case, question=Question(name, f"{events} events")))
    return found


def _consumption(scale: Scale) -> list[Case]:
    """The matches of Q5 and Q6 are thousands for each detection, in a long stream too many to be written."""
    found = []
    for name, formula in QUERIES.items():
        stream = Stream("synthetic", {"events": scale.events, "types": "A,B,C,D"})
        modes: tuple[Mode, ...] = ("count",) if name in ("Q5", "Q6") else ("count", "write")
        text = f"SELECT * WHERE {formula} CONSUME BY ANY"
        # After a match Esper skips all events up to its last one, which is the same.
        peers = (Peer("CORE", {"query": f"SELECT * FROM S WHERE {formula} CONSUME BY ANY"}), _esper(name))
        case = _case(f"consume {name}", text, stream, modes, peers=peers)
        found.append(replace(case, question=Question(name, "consumed")))
    return found


def _strategies(scale: Scale) -> list[Case]:
    """One match of each detecting event is asked for: there are too many to be written, or even to be counted."""
    found = []
    names = ("Q1", "Q5") if scale.quick else tuple(QUERIES)
    for distribution, weights in _SHARES.items():
        stream = Stream("synthetic", {"events": scale.events, "types": "A,B,C,D,E", "weights": weights})
        for name in names:
            for strategy in _STRATEGIES:
                text = f"SELECT {strategy} * WHERE {QUERIES[name]} LIMIT 1"
                case = f"{strategy} {name}, {distribution}"
                peers = _core_limited(strategy, name, distribution)
                found.append(_case(case, text, stream, ("count",), peers=peers))
            for window in _WINDOWS:
                for strategy in ("ALL", "NEXT", "LAST", "MAX"):
                    text = f"SELECT {strategy} * WHERE {QUERIES[name]} WITHIN {window} EVENTS LIMIT 1"
                    point = Point("window", window, f"{strategy} {name}, {distribution}")
                    case = f"{strategy} {name}, {distribution}, window of {window:,}"
                    # CORE's windows have one event more.
                    peers = _core_limited(strategy, name, distribution, f" WITHIN {window - 1} EVENTS")
                    modes: tuple[Mode, ...] = ("count", "write") if window <= _WRITABLE else ("count",)
                    found.append(_case(case, text, stream, modes, point, peers=peers))
    return found


def _core_limited(strategy: str, name: str, distribution: str, window: str = "") -> tuple[Peer, ...]:
    """CORE with one match of each detecting event; it takes other strategies than ALL, too, but gives all matches."""
    query = f"SELECT * FROM S WHERE {QUERIES[name]}{window} LIMIT 1"
    return (Peer("CORE", {"query": query}, family=f"{name}, {distribution}"),) if strategy == "ALL" else ()


def _peers(name: str) -> tuple[Peer, ...]:
    """The sequence in the words of the other engines."""
    words = [word for kind in _STRESS[name].split(",") for word in (kind.lower(), kind, "-")]
    family = f"stress {name}"
    return (
        Peer("CORE", {"query": f"SELECT * FROM S WHERE {QUERIES[name]}"}, family=family),
        Peer("FlinkCEP", {"window": _FOREVER, "pattern": words}, family=family),
        _esper(name, family),
    )


def _esper(name: str, family: str | None = None) -> Peer:
    """Esper with a query, all matches of which it counts."""
    pattern = _ROWS[name]
    define = [f"{x} as {x}.type='{x}'" for x in "ABCD" if x in pattern]
    return Peer("Esper", {"question": "rows", "pattern": pattern, "define": define}, family=family, mode="count")


def _case(
    name: str,
    text: str,
    stream: Stream,
    modes: tuple[Mode, ...],
    point: Point | None = None,
    runs: int = 100,
    peers: tuple[Peer, ...] = (),
) -> Case:
    return Case("cel", name, text, stream, ("type",), modes, peers, point=point, layouts=("encoded",), runs=runs)
