"""Explanations as text for people: sections with a heading, lines that fit a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from cerflow import limits

_Facts = dict[str, Any]
#: The columns that text may take; the command line sets those of its terminal.
WIDTH = ContextVar("WIDTH", default=102)

#: A space at which no line ends.
_UNBROKEN = "\u00a0"

_KEEPS = {
    "value": "one value",
    "min": "the least so far",
    "max": "the greatest so far",
    "same": "one value while all are equal",
    "set": "all distinct values",
}


def as_text(facts: _Facts) -> str:
    """The facts about a query as text."""
    sections = [section("Query", _wrapped(facts["query"]))]
    if not facts["evaluable"]:
        sections.append(section("Not evaluable", _refusal(facts["unsupported"])))
    sections.append(section("Formula", _formula(facts)))
    if facts["labels"]:
        sections.append(section("Labels", table(_labels(facts))))
    if facts["filters"]:
        sections.append(section("Filters", _filters(facts["filters"])))
    sections.append(section("Selection", table(_selection(facts))))
    if facts["automaton"] is not None:
        sections.append(section("Automaton", _automaton(facts["automaton"])))
        sections.append(section("Recognition", table(_recognition(facts["recognition"]))))
        sections.append(section("Evaluation", _evaluation(facts["evaluation"])))
        sections.append(section("Events that matter", relevant_lines(facts["relevant_events"])))
        sections.append(section("With threads", table(_threads(facts["threads"]))))
        sections.append(section("On Spark", table(_spark(facts["spark"]))))
    return "\n".join(sections).rstrip()


# -- layout -----------------------------------------------------------------------------------------------------------


def section(title: str, lines: Iterable[str]) -> str:
    """Lines under a heading."""
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)]) + "\n"


def _wrapped(text: str, indent: int = 0) -> list[str]:
    width = max(10, WIDTH.get() - 2 - indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(_UNBROKEN, " ") for line in lines]


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Rows in two columns; a long first entry has a line of its own."""
    left = min(24, WIDTH.get() // 3, max((len(first) for first, _ in rows), default=0))
    lines: list[str] = []
    for first, second in rows:
        wrapped = _wrapped(second, left + 2)
        if len(first) > left:
            lines += _wrapped(first)
        else:
            lines.append(f"{first:{left}}  {wrapped.pop(0)}")
        lines += [" " * (left + 2) + line for line in wrapped]
    return lines


def _cut(rows: Sequence[tuple[str, str]], what: str) -> list[tuple[str, str]]:
    if len(rows) <= limits.EXPLAINED_ENTRIES:
        return list(rows)
    return [*rows[: limits.EXPLAINED_ENTRIES], ("…", f"and {len(rows) - limits.EXPLAINED_ENTRIES} more {what}")]


def _short(text: str) -> str:
    return textwrap.shorten(text, 70, placeholder=" …")


def _list(names: Sequence[str], none: str = "none") -> str:
    return ", ".join(names) or none


# -- sections ---------------------------------------------------------------------------------------------------------


def _refusal(unsupported: _Facts) -> list[str]:
    place = "" if unsupported["line"] is None else f"line {unsupported['line']}, column {unsupported['column']}: "
    lines = _wrapped(place + unsupported["reason"])
    return lines + _wrapped(unsupported["hint"]) if unsupported["hint"] else lines


def _formula(facts: _Facts) -> list[str]:
    formula = facts["formula"]
    if formula["rewritten"]:
        return table([("written", formula["written"]), ("rewritten", formula["compiled"])])
    return _wrapped(formula["compiled"])


def _labels(facts: _Facts) -> list[tuple[str, str]]:
    rows = []
    for entry in facts["labels"]:
        meaning = _number_of_events(entry["least"], entry["most"])
        rows.append((entry["label"], meaning + (", an event type" if entry["event_type"] else "")))
    rows = _cut(rows, "labels")
    if facts["other_events"]:
        rows.append(("(type of the event)", "events of any type, by EVENT or NOT"))
    return rows


def _number_of_events(least: int, most: int | None) -> str:
    if most is None:
        return "any number of events" if not least else f"{_events(least)} or more"
    if least == most:
        return f"exactly {_events(most)}"
    return f"{least:,} to {_events(most)}" if least else f"at most {_events(most)}"


def _events(number: int) -> str:
    return "one event" if number == 1 else f"{number:,} events"


def _filters(filters: Sequence[_Facts]) -> list[str]:
    lines: list[str] = []
    for entry in filters[: limits.EXPLAINED_ENTRIES]:
        lines += _wrapped(f"{_short(entry['of'])}")
        if entry["clauses"] is None:
            lines.append("  all of: (too many combinations of AND and OR)")
        else:
            lines += [f"  {line}" for clause in entry["clauses"] for line in _wrapped(_clause(clause), 2)]
        for label, binder in entry["bound_outside"].items():
            lines += [f"  {line}" for line in _wrapped(f"where {label} is the one event bound by: {_short(binder)}", 2)]
    if len(filters) > limits.EXPLAINED_ENTRIES:
        lines.append(f"… and {len(filters) - limits.EXPLAINED_ENTRIES} more filters")
    return lines


def _clause(clause: Sequence[str]) -> str:
    return f"must hold: {clause[0]}" if len(clause) == 1 else f"one must hold: {' | '.join(clause)}"


def _selection(facts: _Facts) -> list[tuple[str, str]]:
    select, window = facts["select"], facts["window"]
    chosen = " BY ".join([select["strategy"], *([", ".join(select["by"])] if select["by"] else [])])
    rows = [("matches", chosen), ("reported", select["projection"])]
    if select["labels_kept"] is not None:
        rows.append(("distinguished by", f"the labels {_list(select['labels_kept'])}"))
        listed = _list(select["labels_listed"])
        rows.append(("start_time, end_time", f"of the events reported, those with {listed}, not of the whole match"))
    if select["streams"]:
        rows.append(("streams", _list(select["streams"])))
    if window is not None and window["window"] is not None:
        rows.append(("window", window["window"] + _ENFORCED.get(window["enforced_by"], "")))
    if window is not None and window["inner"]:
        rows.append(("windows inside", f"{_list(window['inner'])}, checked in registers"))
    if select["partition"]:
        rows.append(("partitions", "; ".join(" or else ".join(key) for key in select["partition"])))
    if facts["keys_kept"] is not None:
        rows.append(("keys", facts["keys_kept"]))
    if facts["values_kept"] is not None:
        rows.append(("memory", f"{facts['values_kept']} is remembered for good: each value (no window bounds it)"))
    if select["consume"] != "NONE":
        rows.append(("consumption", select["consume"]))
    if select["limit"] is not None:
        rows.append(("limit", f"{select['limit']} per detecting event"))
    return rows


_ENFORCED = {
    "match graph": ", checked on the match graph: matches are kept in the order of their starts",
    "register": ", checked in a register, because events that are read but not reported count too",
}


def _automaton(automaton: _Facts) -> list[str]:
    rows = [
        (
            "states",
            f"{automaton['states']} (initial {_states(automaton['initial'])}, final {_states(automaton['final'])})",
        ),
        ("transitions", str(len(automaton["transitions"]))),
        ("registers", str(len(automaton["registers"]))),
        ("matches", _runs(automaton)),
    ]
    lines = table(rows)
    if automaton["registers"]:
        registers = [
            (
                r["name"],
                f"{r['holds']}: {_KEEPS[r['keeps']]}" + (f", for WITHIN {r['window']}" if r["window"] else ""),
            )
            for r in automaton["registers"]
        ]
        lines += ["", *table(_cut(registers, "registers"))]
    transitions = [_edge(t) for t in automaton["transitions"]]
    return [*lines, "", *table(_cut(transitions, "transitions"))] if transitions else lines


def _runs(automaton: _Facts) -> str:
    reduced = automaton["reduced_from"]
    if reduced is not None:
        return f"from any number of runs, which SELECT NONE does not count ({reduced['states']} states without that)"
    if not automaton["unambiguous"]:
        return "may come from several runs; runs with equal outputs are joined at run time"
    before = automaton["determinized_from"]
    if before is None:
        return "each comes from one run (unambiguous)"
    return f"each comes from one run: determinised on its outputs (before: {before['states']} states, ambiguous)"


def _states(states: Sequence[int]) -> str:
    return _list([f"q{q}" for q in states])


def _edge(t: _Facts) -> tuple[str, str]:
    # Lines break between the parts, not within them.
    parts = [f"| {t['labels']}", *(f"↓ {w}" for w in t["writes"])]
    rest = " ".join(part.replace(" ", _UNBROKEN) for part in parts)
    return f"q{t['source']} → q{t['target']}", f"{t['guard']} {rest}"


def _recognition(recognition: _Facts) -> list[tuple[str, str]]:
    if recognition["one_per"] is None:
        return [("kept", f"a graph of all matches: {recognition['reason']}")]
    one, *registers = recognition["one_per"]
    contents = f" and content of {_list(registers)}" if registers else ""
    lines = [
        ("kept", f"detection only, the latest start of partial matches: {recognition['reason']}"),
        ("at most", f"one configuration for each {one}{contents} (in each partition)"),
    ]
    if recognition["best"]:
        lines.append(("of these", f"those that no other one beats in both {_list(recognition['best'])} and start"))
    return lines


def _evaluation(evaluation: _Facts) -> list[str]:
    tests = [(e["test"], "" if e["per"] is None else f"once per {e['per']}") for e in evaluation["tests"]]
    lines = ["once per event, on columns"]
    lines += _indented(_pairs(_cut(tests, "tests")) or ["nothing"])
    if evaluation["expressions"]:
        lines += _wrapped("turned into columns, for registers and comparisons with them")
        lines += _indented(_pairs([(e["expression"], e["type"]) for e in evaluation["expressions"]]))
    if evaluation["atoms"]:
        kinds = {None: "", "comparison": "a comparison", "program": "a small program"}
        lines.append("compared with registers at run time")
        lines += _indented(_pairs(_cut([(e["atom"], kinds[e["as"]]) for e in evaluation["atoms"]], "atoms")))
    columns, scan = evaluation["columns"], evaluation["scan"]
    if columns is not None:
        computed = [f"{each['test']}  ({each['because']})" for each in scan["by_columns"]]
        lines += table(
            [
                *(("evaluated by columns" if k == 0 else "", line) for k, line in enumerate(computed)),
                *(("left out before" if k == 0 else "", line) for k, line in enumerate(scan["left_out"])),
                ("columns read", _list(columns["recognition"])),
                ("kept for results", _list(columns["results"])),
                ("not read", _list(columns["unused"])),
            ]
        )
    return lines


def _pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [line for first, second in rows for line in _wrapped(f"{first}  ({second})" if second else first, 2)]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def relevant_lines(relevant: _Facts) -> list[str]:
    """Which events are not left out, and why not fewer of them."""
    if relevant["condition"] is None:
        return _wrapped(f"all: {'; '.join(relevant['reasons'])}")
    rows = [("only those with", relevant["condition"])]
    if relevant["reasons"]:
        rows.append(("of these all", "; ".join(relevant["reasons"])))
    return table(rows)


def _threads(threads: _Facts) -> list[tuple[str, str]]:
    how = "in slices of the stream, in parallel" if threads["parallel"] == "by time" else "in one thread"
    return [("evaluated", f"{how}: {threads['reason']}")]


def _spark(spark: _Facts) -> list[tuple[str, str]]:
    how = "in parallel by key" if spark["parallel"] == "by key" else "in one ordered task"
    rows = [("evaluated", f"{how}: {spark['reason']}")]
    if spark["slices"] is not None:
        why = f"in slices of the stream where its order allows it: {spark['slices']} (see cerflow.spark.explain)"
        rows = [("large input", why), ("else", rows[0][1])]
    elif spark["by_clock"]:
        why = "in parallel by key: a clock shows deadlines, and the times of all events say when they are known"
        rows = [("large input", why), ("else", rows[0][1])]
    if spark["columns"] is not None:
        rows.append(("columns sent", _list(spark["columns"])))
    if spark["positions_read"]:
        rows.append(("positions", "read by the query, so events are numbered first"))
    return rows
