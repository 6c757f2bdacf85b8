"""Facts about a query, as JSON can hold them and as text; those of its automaton are in `evaluation`."""

from __future__ import annotations

import json
from contextlib import suppress
from math import inf
from typing import Literal, get_args

from cerflow.automata.compile.formulas import hoist_window
from cerflow.automata.model.diagrams import transducer_diagram
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.optimise.growth import kept_values
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError, dotted, one_of
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.planning import detects_only, fitted, limit_of, made_ready, transducer_of
from cerflow.engine.results.report import kept_labels
from cerflow.engine.slices.division import keys_kept
from cerflow.language import formula as f
from cerflow.language.node import transform, walk
from cerflow.language.printer import show
from cerflow.language.select import LabelItem, Select
from cerflow.language.sremo import Regular, Windowed
from cerflow.logic.analysis import columns, multiplicity, scopes, types
from cerflow.logic.conditions.connectives import clauses
from cerflow.logic.rewriting.implied import with_windows_of_gaps
from cerflow.logic.rewriting.keys import keys_added
from cerflow.logic.rewriting.strategies import without_strategies
from cerflow.look.explaining import evaluation
from cerflow.look.explaining.text import Facts, Told, cut, in_lines, listed, section, short, table
from cerflow.look.pictures.diagram import Diagram, Vertex
from cerflow.look.pictures.formula_svg import formula_svg
from cerflow.look.pictures.targets import PICTURE_FORMATS, picture

ExplainFormat = Literal["text", "json", "dot", "mermaid", "svg", "boxes"]


def explain_query(
    written: Select,
    select: Select,
    *,
    text: str | None,
    reading: str,
    format: ExplainFormat,
    schema: Schema | None,
    refused: UnsupportedQueryError | None = None,
) -> str:
    """An explanation of a query as text for people or as JSON, or a picture of its automaton.

    ``select`` is what is evaluated, ``written`` what it was read from. With a schema also what becomes of the
    columns. A query that the engine cannot evaluate yet (or is ``refused``) is explained as far as possible, with the
    reason. Raises `QueryError` if the query does not fit the schema.
    """
    one_of(format, "format", *get_args(ExplainFormat))
    if schema is not None:
        types.check_types(select, schema)
    if format == "boxes":
        return formula_svg(written)
    compiled: Transducer | None = None
    transducer: Transducer | None = None
    plan: Plan | None = None
    try:
        if refused is not None:
            raise refused
        evaluated = with_windows_of_gaps(select, None) if schema is None else fitted(select, schema)
        compiled = transducer_of(evaluated)
        transducer = made_ready(evaluated, compiled)
        if schema is not None:
            plan = Plan(select, schema, transducer=transducer)
    except UnsupportedQueryError as error:
        refused = error
        error.with_source(text)
    if format in PICTURE_FORMATS:
        diagram = (
            # It only says something.
            Diagram("transducer", "q", [Vertex(f"not evaluable: {refused and refused.reason}", box=True)], [])
            if transducer is None
            else transducer_diagram(transducer)
        )
        return picture(diagram, format, title=show(written))
    query = show(written)
    kept = None if transducer is None else keys_kept(select, transducer, schema)
    values = None if transducer is None else kept_values(transducer, detecting=detects_only(select))
    window = _window(select, transducer)
    # Without a schema it is not known what kind of values are compared.
    implied = [] if schema is None or transducer is None else keys_added(select, evaluated)
    others = any(isinstance(n, f.OfAnyType) for n in walk(select.formula))
    told = {
        "query": Told(query, "Query", in_lines(query)),
        "reading": Told(reading),
        "evaluable": Told(refused is None),
        "unsupported": _refusal(refused),
        "formula": _formula(written, select),
        "event_types": Told(sorted(scopes.relation_names(select.formula))),
        "other_events": Told(others),
        "attributes": Told(sorted(columns.attributes_in(select))),
        "labels": _labels(select.formula, others),
        "filters": _filters(select.formula),
        "select": _select(select, window, kept, None if values is None else values.meaning, implied),
        "keys_kept": Told(kept),
        "values_kept": Told(None if values is None else values.meaning),
        "window": Told(window),
        **dict.fromkeys(evaluation.SECTIONS, Told(None)),
    }
    if transducer is not None:
        told |= evaluation.sections(select, transducer, compiled, plan, schema)
    if format == "json":
        return dotted(json.dumps({name: one.facts for name, one in told.items()}, indent=2, ensure_ascii=False))
    return dotted("\n".join(section(one.title, one.lines) for one in told.values() if one.lines).rstrip())


def _refusal(error: UnsupportedQueryError | None) -> Told:
    if error is None:
        return Told(None)
    place = "" if error.line is None else f"line {error.line}, column {error.column}: "
    lines = in_lines(place + error.reason) + (in_lines(error.hint) if error.hint else [])
    facts = {"reason": error.reason, "hint": error.hint, "line": error.line, "column": error.column}
    return Told(facts, "Not evaluable", lines)


def _formula(written: Select, select: Select) -> Told:
    compiled, _ = hoist_window(select.formula, select.window)
    match compiled:
        case f.Project(labels, f.As(operand)) if labels == (f.UNNAMED,):
            compiled = operand  # of the first-order reading, where all events have this one label
    rewritten = compiled != hoist_window(written.formula, written.window)[0]
    if any(isinstance(n, Regular) for n in walk(compiled)):
        with suppress(UnsupportedQueryError):  # it is said elsewhere that this cannot be evaluated
            plain = transform(
                compiled, lambda n: Regular(without_strategies(n.expression)) if isinstance(n, Regular) else n
            )
            rewritten |= plain != compiled
            compiled = plain
    before, after = show(written.formula), show(compiled)
    language = "sremo" if isinstance(compiled, Regular) else "ceql"
    facts = {"language": language, "written": before, "compiled": after, "rewritten": rewritten}
    lines = table([("written", before), ("rewritten", after)]) if rewritten else in_lines(after)
    return Told(facts, "Formula", lines)


def _labels(formula: f.Formula, others: bool) -> Told:
    relations = scopes.labels_of(formula).relations
    facts, rows = [], []
    for label, (least, bound) in sorted(multiplicity.label_counts(formula).bounds.items()):
        if label != f.UNNAMED:
            most = None if bound == inf else int(bound)
            facts.append({"label": label, "least": least, "most": most, "event_type": label in relations})
            rows.append((label, _number_of_events(least, most) + (", an event type" if label in relations else "")))
    if not facts:
        return Told(facts)
    rows = cut(rows, "labels") + ([("(type of the event)", "events of any type, by EVENT or NOT")] if others else [])
    return Told(facts, "Labels", table(rows))


def _number_of_events(least: int, most: int | None) -> str:
    bound = least if most is None else most
    events = "one event" if bound == 1 else f"{bound:,} events"
    if most is None:
        return f"{events} or more" if least else "any number of events"
    return f"exactly {events}" if least == most else f"{least:,} to {events}" if least else f"at most {events}"


def _filters(formula: f.Formula) -> Told:
    nodes = list(walk(formula))
    facts: list[Facts] = []
    for index, bindings in sorted(scopes.resolve(formula).outer.items()):
        current = nodes[index]
        assert isinstance(current, f.Filter | f.NotEvent)
        assert current.condition is not None
        filtered: f.Formula = current.operand if isinstance(current, f.Filter) else current.event
        while isinstance(filtered, f.Filter):
            filtered = filtered.operand
        normal: list[list[str]] | None = None
        with suppress(UnsupportedQueryError):
            normal = [[show(atom) for atom in clause] for clause in clauses(current.condition)]
        outside = {label: show(nodes[binder]) for label, binder in sorted(bindings.items())}
        of = show(filtered, kinds=False)
        facts.append({"condition": show(current.condition), "of": of, "clauses": normal, "bound_outside": outside})
    lines: list[str] = []
    for entry in facts[: limits.EXPLAINED_ENTRIES]:
        lines += in_lines(short(entry["of"]))
        said = ["all of: (too many combinations of AND and OR)"] if entry["clauses"] is None else []
        for clause in entry["clauses"] or ():
            said.append(f"must hold: {clause[0]}" if len(clause) == 1 else f"one must hold: {' | '.join(clause)}")
        for label, binder in entry["bound_outside"].items():
            said.append(f"where {label} is the one event bound by: {short(binder)}")
        lines += [f"  {line}" for one in said for line in in_lines(one, 2)]
    if len(facts) > limits.EXPLAINED_ENTRIES:
        lines.append(f"… and {len(facts) - limits.EXPLAINED_ENTRIES} more filters")
    return Told(facts, "Filters", lines)


_ENFORCED = {
    "match graph": ", checked on the match graph: matches are kept in the order of their starts",
    "register": ", checked in a register, because events that are read but not reported count too",
}


def _window(select: Select, transducer: Transducer | None) -> Facts | None:
    formula, window = hoist_window(select.formula, select.window)
    inner = list(dict.fromkeys(show(n.window) for n in walk(formula) if isinstance(n, f.Within | Windowed)))
    if window is None and not inner:
        return None
    enforced = None
    if window is not None and transducer is not None:
        enforced = "match graph" if transducer.window is not None else "register"
    return {"window": None if window is None else show(window), "enforced_by": enforced, "inner": inner}


def _select(
    select: Select, window: Facts | None, keys_kept: str | None, values_kept: str | None, implied: list[str]
) -> Told:
    kept = kept_labels(select)
    items = [item.label for item in select.projection.items if isinstance(item, LabelItem)]
    facts: Facts = {
        "strategy": str(select.strategy),
        "by": [reference.label for reference in select.by],
        "projection": show(select.projection),
        "labels_kept": None if kept is None else sorted(kept),
        "labels_listed": items,
        "streams": list(select.streams),
        "partition": [list(key) for key in select.partition],
        "implied_keys": implied,
        "consume": str(select.consume),
        "limit": limit_of(select),
    }
    by = f" BY {', '.join(facts['by'])}" if facts["by"] else ""
    rows = [("matches", facts["strategy"] + by), ("reported", facts["projection"])]
    if kept is not None:
        rows.append(("distinguished by", f"the labels {listed(sorted(kept))}"))
        said = f"of the events reported, those with {listed(items)}, not of the whole match"
        rows.append(("start_time, end_time", said))
    if select.streams:
        rows.append(("streams", listed(select.streams)))
    if window is not None and window["window"] is not None:
        rows.append(("window", window["window"] + _ENFORCED.get(window["enforced_by"], "")))
    if window is not None and window["inner"]:
        rows.append(("windows inside", f"{listed(window['inner'])}, checked in registers"))
    if select.partition:
        rows.append(("partitions", "; ".join(" or else ".join(key) for key in select.partition)))
    if implied:
        rows.append(("divided by", f"{listed(implied)}: conditions make all events that a match depends on agree"))
    if keys_kept is not None:
        rows.append(("keys", keys_kept))
    if values_kept is not None:
        rows.append(("memory", f"{values_kept} is remembered for good: each value (no window bounds it)"))
    if facts["consume"] != "NONE":
        rows.append(("consumption", facts["consume"]))
    if facts["limit"] is not None:
        rows.append(("limit", f"{facts['limit']} per detecting event"))
    return Told(facts, "Selection", table(rows))
