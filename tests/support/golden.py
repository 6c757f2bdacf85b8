"""The worked examples of the theory, as data that every way of evaluating a query must reproduce.

Streams are lists of dicts; an expected answer is a set of (detecting position, positions of the match).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Answer = frozenset[tuple[int, frozenset[int]]]
Labelled = frozenset[tuple[int, frozenset[tuple[str, int]]]]


@dataclass(frozen=True)
class Case:
    """A query, a stream, and the matches as (n, positions); projected matches that are equal count once."""

    name: str
    query: str
    stream: tuple[Row, ...]
    expected: Answer


@dataclass(frozen=True)
class LabelledCase:
    """The same with the labels: expected are (n, complex event)."""

    name: str
    query: str
    stream: tuple[Row, ...]
    expected: Labelled


def rows(types: str, **columns: list[Any]) -> tuple[Row, ...]:
    """A stream of events with one-letter types; the other columns are lists of the same length."""
    return tuple(
        {"type": kind, **{name: values[i] for name, values in columns.items()}} for i, kind in enumerate(types)
    )


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def sets(*names: str) -> list[frozenset[int]]:
    """``"012"`` is the set of positions {0, 1, 2}."""
    return [frozenset(map(int, name)) for name in names]


def at_end(*names: str) -> Answer:
    """Matches detected at their last position."""
    return frozenset((max(s), s) for s in sets(*names))


def labelled(n: int, **events: str) -> tuple[int, frozenset[tuple[str, int]]]:
    """A match detected at n; each label with its positions as a word."""
    return n, frozenset((label, int(p)) for label, word in events.items() for p in word)


# --- streams ---------------------------------------------------------------------------------------------------------

#: Temperatures and humidities (complex event logic §6.1, P1 Figure 1).
SENSORS = rows("HTHHTTTHH", id=[2, 0, 0, 1, 1, 0, 1, 1, 0], value=[25, 45, 20, 25, 40, 42, 25, 70, 18])
#: The stream of §6.2.
LETTERS = rows("AABACBCD")
#: Temperatures and humidities of §6.3 (P2 Figure 1).
RISING = rows("THHTHTHHTH", value=[-2, 30, 20, -1, 27, 2, 45, 50, -2, 65])
#: The stream beside Example 6.1.
COLD_SNAP = rows("HTHTHH", value=[30, -2, 20, -1, 46, 50])
#: Temperatures and humidities of register transducers §6.1 (003 Table 1).
SIX = rows("TTTHHT", id=[1, 1, 2, 1, 1, 2], value=[22, 24, 32, 70, 68, 33])

# --- formulas of P1 --------------------------------------------------------------------------------------------------

HOT_DRY = "x.value > 40 AND y.value <= 25 AND x.id = 0 AND y.id = 0"
PHI1 = f"(T AS x ; H AS y) FILTER ({HOT_DRY})"
PHI1_PUSHED = "((T AS x) FILTER (x.value > 40 AND x.id = 0)) ; ((H AS y) FILTER (y.value <= 25 AND y.id = 0))"
PHI2 = f"((T AS x ; H AS y) OR (H AS y ; T AS x)) FILTER ({HOT_DRY})"
PHI3 = "(H AS x ; (T AS y FILTER y.id = 1)+ ; H AS z) FILTER (x.value < 30 AND z.value > 60 AND x.id = 1 AND z.id = 1)"
PHI4 = "(H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z) FILTER (x.value < 30 AND z.value > 60 AND x.id = z.id)"
PHI4_SECOND_ORDER = (
    "(H AS X ; (T+ AS Y) ; H AS Z) FILTER (X.value < 30 AND Z.value > 60 AND X.id = Y.id AND X.id = Z.id)"
)
PHI5 = "(H AS x) FILTER y.value <= 30"
PHI6 = "(T AS x) ; ((T AS y FILTER x.value >= 40) OR (H AS y FILTER x.value < 40))"
UNSAFE = "T AS x ; T AS x"
#: Automaton of P1 Figure 2: begin and end with an H, any of the hot T's between.
FIGURE2 = "(H ; H) OR (H ; (T FILTER T.value > 40)+ ; H)"

_THREE = ("3467", "367", "347")
_PHI1 = ("12", "18", "58")
_FIGURE2_ALL = words("02 012 03 013 23 07 017 057 0157 27 257 37 357 08 018 058 0158 28 258 38 358 78")

#: formula → strategy → supports
STRATEGY_TABLE: dict[str, dict[str, tuple[str, ...]]] = {
    PHI1: {"ALL": _PHI1, "STRICT": ("12",), "NEXT": ("12", "18"), "LAST": ("12", "58"), "MAX": _PHI1},
    PHI1_PUSHED: {"ALL": _PHI1, "STRICT": ("12",), "NEXT": ("12", "18"), "LAST": ("12", "58"), "MAX": _PHI1},
    PHI2: {
        "ALL": (*_PHI1, "25"),
        "STRICT": ("12",),
        "NEXT": ("12", "25", "18"),
        "LAST": ("12", "25", "58"),
        "MAX": (*_PHI1, "25"),
    },
    PHI3: {"ALL": _THREE, "STRICT": (), "NEXT": ("3467",), "LAST": ("3467",), "MAX": ("3467",)},
    PHI4: {"ALL": _THREE, "STRICT": (), "NEXT": ("3467",), "LAST": ("3467",), "MAX": ("3467",)},
    PHI4_SECOND_ORDER: {"ALL": _THREE, "STRICT": (), "NEXT": ("3467",), "LAST": ("3467",), "MAX": ("3467",)},
    PHI6: {
        "ALL": ("14", "15", "45", "16", "46", "56", "67", "68"),
        "STRICT": ("45", "56", "67"),
        "NEXT": ("14", "15", "16", "67", "68"),
        "LAST": ("14", "45", "56", "67", "68"),
        "MAX": ("14", "15", "45", "16", "46", "56", "67", "68"),
    },
    FIGURE2: {
        "ALL": _FIGURE2_ALL,
        "NEXT": ("012", "013", "0157", "0158"),
        "LAST": ("012", "23", "357", "78"),
        "STRICT": ("012", "23", "78"),
        "MAX": ("012", "013", "23", "0157", "257", "357", "0158", "258", "358", "78"),
    },
}

#: Benchmark queries Q1–Q6 on LETTERS (§6.2).
LETTER_QUERIES: dict[str, dict[str, tuple[str, ...]]] = {
    "A AS x ; B AS y ; C AS z": {
        "ALL": words("024 124 026 056 126 156 356"),
        "STRICT": (),
        "NEXT": ("024", "026"),
        "LAST": ("124", "356"),
        "MAX": words("024 124 026 056 126 156 356"),
    },
    "A AS x ; B AS y ; C AS z ; D AS w": {
        "ALL": words("0247 0267 0567 1247 1267 1567 3567"),
        "STRICT": (),
        "NEXT": ("0247",),
        "LAST": ("3567",),
        "MAX": words("0247 0267 0567 1247 1267 1567 3567"),
    },
    "((A AS x OR B AS y) OR C AS z) ; D AS w": {
        "ALL": words("07 17 27 37 47 57 67"),
        "STRICT": ("67",),
        "NEXT": ("07",),
        "LAST": ("67",),
        "MAX": words("07 17 27 37 47 57 67"),
    },
    "(A AS x)+ ; (B AS y)": {
        "ALL": words("012 02 12 0135 015 035 05 135 15 35"),
        "STRICT": ("012", "12"),
        "NEXT": ("012", "0135"),
        "LAST": ("012", "0135"),
        "MAX": ("012", "0135"),
    },
    "(A AS x)+ ; (B AS y)+ ; C AS z": {
        "ALL": words("0124 024 124 01256 0126 01356 0156 0256 026 0356 056 1256 126 1356 156 356"),
        "STRICT": (),
        "NEXT": ("0124", "01256"),
        "LAST": ("0124", "01356"),
        "MAX": ("0124", "01256", "01356"),
    },
    "((A AS x)+ ; (B AS y))+ ; C AS z": {
        "ALL": words("0124 024 124 012356 0126 01356 0156 02356 026 0356 056 12356 126 1356 156 356"),
        "STRICT": (),
        "NEXT": ("0124", "012356"),
        "LAST": ("0124", "012356"),
        "MAX": ("0124", "012356"),
    },
}


def _strategies() -> list[Case]:
    found = []
    for stream, table in ((SENSORS, STRATEGY_TABLE), (LETTERS, LETTER_QUERIES)):
        for formula, answers in table.items():
            for strategy, supports in answers.items():
                found.append(
                    Case(f"{strategy} {formula}", f"SELECT {strategy} * WHERE {formula}", stream, at_end(*supports))
                )
    return found


INCREASING = "(T ; (H+ AS HS) ; (H AS HH)) FILTER (T.value < 0 AND increasing(HS.value) AND HH.value >= 60)"
_SUBSETS = ("4", "6", "7", "46", "47", "67", "467")
_FROM_START = (
    "1",
    "2",
    "4",
    "6",
    "7",
    "16",
    "17",
    "24",
    "26",
    "27",
    "46",
    "47",
    "67",
    "167",
    "246",
    "247",
    "267",
    "467",
    "2467",
)
_INCREASING = [f"0{hs}9" for hs in _FROM_START] + [f"3{hs}9" for hs in _SUBSETS]

CASES: list[Case] = [
    *_strategies(),
    # complex event logic §6.3
    Case("rising humidity", f"SELECT * WHERE {INCREASING}", RISING, at_end(*_INCREASING)),
    Case(
        "P2 figure 2: projected last event",
        "SELECT * WHERE PROJECT H (H ; T)",
        RISING,
        frozenset((n, s) for n, found in ((3, "1 2"), (5, "1 2 4"), (8, "1 2 4 6 7")) for s in sets(*found.split())),
    ),
    Case(
        "example 6.1 on P2 figure 1",
        "SELECT * WHERE PROJECT H (((((H AS X) OR T) :+) : (H AS Y)) "
        "FILTER (X.value < 40 AND T.value < 0 AND Y.value > 45))",
        RISING,
        at_end("9"),
    ),
    Case(
        "example 6.1",
        "SELECT * WHERE PROJECT H (((((H AS X) OR T) :+) : (H AS Y)) "
        "FILTER (X.value < 40 AND T.value < 0 AND Y.value > 45))",
        COLD_SNAP,
        at_end("024", "24", "4"),
    ),
    Case("A :+ on AAA (erratum E6)", "SELECT * WHERE A :+", rows("AAA"), at_end("0", "1", "01", "2", "12", "012")),
    # complex event logic §6.4
    Case("UNLESS on AB", "SELECT * WHERE (A ; B) UNLESS C", rows("AB"), at_end("01")),
    Case("UNLESS on ACB", "SELECT * WHERE (A ; B) UNLESS C", rows("ACB"), frozenset()),
    Case("UNLESS on CAB", "SELECT * WHERE (A ; B) UNLESS C", rows("CAB"), frozenset()),
    Case("WITHOUT on CAB", "SELECT * WHERE (A ; B) WITHOUT C", rows("CAB"), at_end("12")),
    Case("WITHOUT on ACB", "SELECT * WHERE (A ; B) WITHOUT C", rows("ACB"), frozenset()),
    Case(
        "theorem 6.5",
        "SELECT * WHERE ((A ; E) FILTER A.a = E.a) :+",
        rows("ALEALEALE", a=[1] * 9),
        # Every A with its E, borders touching: suffixes of the three pairs, and any A … E of equal value.
        at_end("02", "05", "08", "35", "38", "68", "0235", "0238", "0568", "3568", "023568"),
    ),
    Case(
        "theorem 6.5 with different values",
        "SELECT * WHERE ((A ; E) FILTER A.a = E.a) :+",
        rows("ALEALEALE", a=[1, 0, 1, 2, 0, 2, 3, 0, 3]),
        at_end("02", "35", "0235", "68", "3568", "023568"),
    ),
    # register transducers §6.1
    Case("T then H", "SELECT * WHERE T AS x ; H AS y", SIX, at_end("03", "04", "13", "14", "23", "24")),
    Case(
        "T then H, same sensor",
        "SELECT * WHERE (T AS x ; H AS y) FILTER x.id = y.id",
        SIX,
        at_end("03", "04", "13", "14"),
    ),
    *(
        Case(
            f"T then H, same sensor, within {w}",
            f"SELECT * WHERE (T AS x ; H AS y) FILTER x.id = y.id WITHIN {w} EVENTS",
            SIX,
            at_end(*found.split()),
        )
        for w, found in ((2, ""), (3, "13"), (4, "03 13 14"), (5, "03 04 13 14"), (6, "03 04 13 14"))
    ),
    Case(
        "several T then H, same sensor",
        "SELECT * WHERE (T AS x FILTER x.id = y.id)+ ; (H AS y)",
        SIX,
        at_end("03", "13", "013", "04", "14", "014"),
    ),
    Case(
        "extreme T then T of the sensor",
        "SELECT * WHERE ((T AS x FILTER x.value < -40) OR (T AS x FILTER x.value > 50)) ; (T AS y FILTER y.id = x.id)",
        SIX,
        frozenset(),
    ),
    # specification §9
    Case(
        "specification: hot then dry",
        f"SELECT * WHERE (T AS x ; H AS y) FILTER {HOT_DRY}",
        SENSORS,
        at_end("12", "18", "58"),
    ),
    Case(
        "specification: a correlated chain",
        "SELECT MAX * WHERE (H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z) "
        "FILTER x.value < 30 AND z.value > 60 AND x.id = z.id",
        SENSORS,
        at_end("3467"),
    ),
]


def _labelled() -> list[LabelledCase]:
    split = [(word[0], word[1:-1]) for word in _INCREASING]
    with_relations = frozenset(labelled(9, T=t, H=f"{hs}9", HS=hs, HH="9") for t, hs in split)
    renamed = frozenset(labelled(9, T=t, HS=hs, HH="9") for t, hs in split)
    return [
        LabelledCase("rising humidity", f"SELECT * WHERE {INCREASING}", RISING, with_relations),
        LabelledCase(
            "rising humidity, renamed",
            "SELECT * WHERE (T ; (H+ [H -> HS]) ; (H [H -> HH])) "
            "FILTER (T.value < 0 AND increasing(HS.value) AND HH.value >= 60)",
            RISING,
            renamed,
        ),
        LabelledCase(
            "hot then dry",
            f"SELECT * WHERE {PHI1}",
            SENSORS,
            frozenset(labelled(int(w[1]), T=w[0], H=w[1], x=w[0], y=w[1]) for w in _PHI1),
        ),
        LabelledCase(
            "rename keeps what was there",
            "SELECT * WHERE (A AS x ; B AS y) [x -> y]",
            rows("AB"),
            frozenset((labelled(1, A="0", B="1", y="01"),)),
        ),
        LabelledCase(
            "select projects",
            f"SELECT y WHERE {PHI1}",
            SENSORS,
            frozenset((labelled(2, y="2"), labelled(8, y="8"))),
        ),
        LabelledCase(
            "next keeps all labellings of the best events",
            "SELECT NEXT * WHERE (A AS x ; B) OR (A ; B AS y)",
            rows("AAB"),
            frozenset((labelled(2, A="0", B="2", x="0"), labelled(2, A="0", B="2", y="2"))),
        ),
    ]


LABELLED_CASES = _labelled()


def separation_4_4(n: int, *, spoilt: bool = False) -> tuple[Row, ...]:
    """R(1)…R(n) T(n+1)…T(2n); spoilt: one R and one T share the value 2n+1 (theorem 4.4)."""
    values = list(range(1, 2 * n + 1))
    if spoilt:
        values[0] = values[-1] = 2 * n + 1
    return rows("R" * n + "T" * n, a=values)


def separation_4_6(n: int, *, spoilt: bool = False) -> tuple[Row, ...]:
    """R(2n) S(1) T(2n-1) S(3) T(2n-3) …; spoilt: one pair of S and T is overwritten with 0 (theorem 4.6)."""
    values = [2 * n]
    for odd in range(1, n, 2):
        values += [odd, 2 * n - odd]
    if spoilt:
        values[-2:] = [0, 0]
    return rows("R" + "ST" * (len(values) // 2), a=values)


SEPARATION_4_4 = "SELECT * WHERE (R+ ; T+) FILTER R.a != T.a"
SEPARATION_4_6 = "SELECT * WHERE R AS x ; ((S AS y ; T AS z) FILTER x.a = y.a + z.a)+"

# --- expressions with memory (register transducers §6.2), positions from 0 ------------------------------------------

#: Trades of 004 Table 1.
TRADES = rows(
    "BBBSSB",
    id=[1, 1, 2, 1, 1, 2],
    price=[22, 24, 32, 70, 68, 33],
    volume=[300, 225, 1210, 760, 2000, 95],
)
E1 = "[type = 'B'] MARK INTO r . [TRUE]* . [type = 'S' AND id = r.id] MARK"
E2 = (
    "([type = 'B' AND price < 10] MARK INTO r | [type = 'B' AND price > 500] MARK INTO r) "
    ". [type = 'S' AND id = r.id] MARK"
)
E2_STREAM = rows("BSBSBSBS", id=[1, 1, 2, 2, 3, 3, 4, 5], price=[5, 7, 600, 9, 50, 9, 5, 9])
LAST_B = "([type = 'B'] MARK INTO r)+ . [type = 'S' AND id = r.id] MARK"
BBBSBS = rows("BBBSBS", id=[1] * 6)

SREMO_CASES: list[Case] = [
    Case("e1 streaming", E1, TRADES, at_end("03", "13", "04", "14")),
    *(
        Case(f"e1 within {w}", f"({E1}) WITHIN {w} EVENTS", TRADES, at_end(*found.split()))
        for w, found in ((2, ""), (3, "13"), (4, "03 13 14"), (5, "03 13 04 14"))
    ),
    Case("e2 contiguous", E2, E2_STREAM, at_end("01", "23")),
    Case("register is overwritten", LAST_B, BBBSBS, at_end("0123", "123", "23", "45")),
    Case(
        "register is overwritten, repeated",
        f"({LAST_B})+",
        BBBSBS,
        at_end("0123", "123", "23", "45", "2345", "12345", "012345"),
    ),
    Case("a.b over abcabc", "[type = 'a'] MARK . [type = 'b'] MARK", rows("abcabc"), at_end("01", "34")),
    Case("next on abbb", "next([type = 'a'] MARK, [type = 'b'] MARK)", rows("abbb"), at_end("01")),
    Case("next on axb", "next([type = 'a'] MARK, [type = 'b'] MARK)", rows("axb"), at_end("02")),
    Case("any on abbb", "any([type = 'a'] MARK, [type = 'b'] MARK)", rows("abbb"), at_end("01", "02", "03")),
    Case("unordered", "unordered([type = 'a'] MARK, [type = 'b'] MARK)", rows("abba"), at_end("01", "23")),
    Case(
        "running on after acceptance (erratum 11.12)",
        "[type = 'a'] MARK . ([type = 'b'] MARK)+",
        rows("abb"),
        at_end("01", "012"),
    ),
    Case(
        "intersection combines equal outputs (erratum 11.4)",
        "([type = 'a'] MARK . [type = 'b'] MARK) & ([type = 'a'] . [type = 'b'] MARK)",
        rows("ab"),
        frozenset(),
    ),
    Case(
        "window counts marked events (erratum 11.6)",
        "([TRUE]* . [type = 'a'] MARK) WITHIN 1 EVENTS",
        rows("xxa"),
        at_end("2"),
    ),
]
