"""Facts about a query, its automaton and where each part is evaluated, as dicts and lists that JSON can hold."""

from __future__ import annotations

import json
from contextlib import suppress
from math import inf
from typing import Any, Literal, get_args

from cerflow.analysis.columns import attributes_in
from cerflow.analysis.multiplicity import label_counts
from cerflow.analysis.scopes import Labels, labels_of, relation_names, resolve
from cerflow.analysis.types import check_types
from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.automata.compile.formulas import hoist_window
from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.automata.model.diagrams import (
    show_condition,
    show_expression,
    show_guard,
    show_labels,
    show_write,
    transducer_diagram,
)
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.automata.optimise.detection import best_values, latest_starts
from cerflow.automata.optimise.growth import kept_values
from cerflow.automata.relevance import relevance_of_transducer
from cerflow.conditions.clauses import clauses
from cerflow.conditions.connectives import TRUE, conjuncts
from cerflow.drawing.diagram import Diagram, Vertex
from cerflow.drawing.formula_svg import formula_svg
from cerflow.drawing.targets import PICTURE_FORMATS, picture
from cerflow.engine import layout
from cerflow.engine.events.signatures import Evaluation, columns_read
from cerflow.engine.recognize.columns_needed import (
    columns_needed,
    needs_positions,
    separable_by_clock,
    separable_by_key,
)
from cerflow.engine.recognize.planning import detects_only, fitted, limit_of, made_ready, transducer_of
from cerflow.engine.results.report import Report, kept_labels
from cerflow.engine.scan.effects import counted_states, empties_states
from cerflow.engine.scan.programs import ScanProgram, scan_program
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.errors import ArgumentError, UnsupportedQueryError, dotted
from cerflow.explaining.text import as_text
from cerflow.language.condition import Not, numbers_matches
from cerflow.language.formula import UNNAMED, AnyEvent, As, Filter, Formula, NotEvent, Project, Within
from cerflow.language.node import Node, transform, walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, LabelItem, Select
from cerflow.language.sremo import Regular, Windowed
from cerflow.pushdown.relevance import relevant_events
from cerflow.rewriting.gaps import with_windows_of_gaps
from cerflow.rewriting.sremo.strategies import without_strategies
from cerflow.schema import Schema
from cerflow.slices.division import divided, keys_kept

ExplainFormat = Literal["text", "json", "dot", "mermaid", "svg", "boxes"]

_Facts = dict[str, Any]


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
    reason. Raises
    `QueryError` if the query does not fit the schema.
    """
    _check_format(format)
    if schema is not None:
        check_types(select, schema)
    if format == "boxes":
        return formula_svg(written)
    compiled: Transducer | None = None
    transducer: Transducer | None = None
    tables: TransducerTables | None = None
    try:
        if refused is not None:
            raise refused
        evaluated = with_windows_of_gaps(select, None) if schema is None else fitted(select, schema)
        compiled = transducer_of(evaluated)
        transducer = made_ready(evaluated, compiled)
        if schema is not None:
            tables = TransducerTables(transducer, schema, keys=select.partition)
    except UnsupportedQueryError as error:
        refused = error
        if text is not None:
            error.with_source(text)
    if format in PICTURE_FORMATS:
        diagram = _refused_diagram(refused) if transducer is None else transducer_diagram(transducer)
        return picture(diagram, format, title=show(written))
    facts: _Facts = {
        "query": show(written),
        "reading": reading,
        "evaluable": refused is None,
        "unsupported": None if refused is None else _refusal(refused),
        "formula": _formula(written, select),
        "event_types": sorted(relation_names(select.formula)),
        "other_events": any(isinstance(n, AnyEvent | NotEvent) for n in walk(select.formula)),
        "attributes": sorted(attributes_in(select)),
        "labels": _labels(select.formula),
        "filters": _filters(select.formula),
        "select": _select(select),
        "keys_kept": None if transducer is None else keys_kept(select, transducer, schema),
        "values_kept": None if transducer is None else _values_kept(select, transducer),
        "window": _window(select, transducer),
        "automaton": None if transducer is None else _automaton(transducer, compiled, detects_only(select)),
        "recognition": None if transducer is None else _recognition(select, transducer),
        "evaluation": None if transducer is None else _evaluation(select, transducer, tables),
        "threads": None if transducer is None else _threads(select, transducer, schema),
        "relevant_events": None if transducer is None else _relevant(select, transducer, schema),
        "spark": None if transducer is None else _spark(select, transducer, schema),
    }
    return dotted(json.dumps(facts, indent=2, ensure_ascii=False) if format == "json" else as_text(facts))


def _check_format(format: str) -> None:
    if format not in get_args(ExplainFormat):
        raise ArgumentError(f"format must be 'text', 'json', 'dot', 'mermaid', 'svg' or 'boxes', not {format!r}")


def _refused_diagram(refused: UnsupportedQueryError | None) -> Diagram:
    """A diagram that only says something."""
    return Diagram("transducer", "q", [Vertex(f"not evaluable: {refused and refused.reason}", box=True)], [])


def _refusal(error: UnsupportedQueryError) -> _Facts:
    return {"reason": error.reason, "hint": error.hint, "line": error.line, "column": error.column}


# -- the query --------------------------------------------------------------------------------------------------------


def _formula(written: Select, select: Select) -> _Facts:
    compiled, _ = hoist_window(select.formula, select.window)
    match compiled:
        case Project(labels, As(operand)) if labels == (UNNAMED,):
            compiled = operand  # of the first-order reading, where all events have this one label
    rewritten = compiled != hoist_window(written.formula, written.window)[0]
    if any(isinstance(n, Regular) for n in walk(compiled)):
        with suppress(UnsupportedQueryError):  # it is said elsewhere that this cannot be evaluated
            plain = transform(compiled, _without_strategies)
            rewritten |= plain != compiled
            compiled = plain
    return {
        "language": "sremo" if isinstance(compiled, Regular) else "ceql",
        "written": show(written.formula),
        "compiled": show(compiled),
        "rewritten": rewritten,
    }


def _without_strategies(current: Node) -> Node:
    return Regular(without_strategies(current.expression)) if isinstance(current, Regular) else current


def _labels(formula: Formula) -> list[_Facts]:
    labels: Labels = labels_of(formula)
    return [
        {
            "label": label,
            "least": least,
            "most": None if most == inf else most,
            "event_type": label in labels.relations,
        }
        for label, (least, most) in sorted(label_counts(formula).bounds.items())
        if label != UNNAMED
    ]


def _filters(formula: Formula) -> list[_Facts]:
    scopes = resolve(formula)
    nodes = list(walk(formula))
    found = []
    for index, bindings in sorted(scopes.outer.items()):
        current = nodes[index]
        assert isinstance(current, Filter | NotEvent)
        assert current.condition is not None
        filtered: Formula = current.operand if isinstance(current, Filter) else current.event
        while isinstance(filtered, Filter):
            filtered = filtered.operand
        try:
            normal = [[show(atom) for atom in clause] for clause in clauses(current.condition)]
        except UnsupportedQueryError:
            normal = None
        found.append(
            {
                "condition": show(current.condition),
                "of": show(filtered, kinds=False),
                "clauses": normal,
                "bound_outside": {label: show(nodes[binder]) for label, binder in sorted(bindings.items())},
            }
        )
    return found


def _select(select: Select) -> _Facts:
    kept = kept_labels(select)
    return {
        "strategy": str(select.strategy),
        "by": [reference.label for reference in select.by],
        "projection": show(select.projection),
        "labels_kept": None if kept is None else sorted(kept),
        "labels_listed": [item.label for item in select.projection.items if isinstance(item, LabelItem)],
        "streams": list(select.streams),
        "partition": [list(key) for key in select.partition],
        "consume": str(select.consume),
        "limit": limit_of(select),
    }


def _window(select: Select, transducer: Transducer | None) -> _Facts | None:
    formula, window = hoist_window(select.formula, select.window)
    inner = list(dict.fromkeys(show(n.window) for n in walk(formula) if isinstance(n, Within | Windowed)))
    if window is None and not inner:
        return None
    enforced = None
    if window is not None and transducer is not None:
        enforced = "match graph" if transducer.window is not None else "register"
    return {"window": None if window is None else show(window), "enforced_by": enforced, "inner": inner}


# -- the automaton ----------------------------------------------------------------------------------------------------


def _automaton(transducer: Transducer, compiled: Transducer | None, detecting: bool) -> _Facts:
    """The automaton that is evaluated; ``compiled`` is the one of the query, before it was determinised or reduced."""
    registers = transducer.registers
    before = None if transducer is compiled or compiled is None else {"states": compiled.states}
    return {
        "states": transducer.states,
        "initial": sorted(transducer.initial),
        "final": sorted(transducer.final),
        "skipping": sorted(transducer.skipping),
        "unambiguous": not ambiguous(transducer),
        "determinized_from": None if detecting else before,
        "reduced_from": before if detecting else None,
        "registers": [
            {
                "name": f"r{k}",
                "holds": r.meaning,
                "keeps": str(r.keeps),
                "fields": r.fields,
                "window": None if r.window is None else show(r.window),
            }
            for k, r in enumerate(registers)
        ],
        "transitions": [
            {
                "source": t.source,
                "target": t.target,
                "guard": show_guard(t, registers),
                "test": [show_condition(test, registers) for test in conjuncts(t.test)],
                "atoms": [show_condition(atom, registers) for atom in t.atoms],
                "labels": show_labels(t.labels),
                "writes": [show_write(w, registers) for w in t.writes],
            }
            for t in transducer.transitions
        ],
    }


def _values_kept(select: Select, transducer: Transducer) -> str | None:
    kept = kept_values(transducer, detecting=detects_only(select))
    return None if kept is None else kept.meaning


def _recognition(select: Select, transducer: Transducer) -> _Facts:
    """The part of partial matches that is kept, and why; for mere detection also the facts that tell them apart."""
    if not detects_only(select):
        return {"keeps": "matches", "reason": "the matches are asked for, or their number", "one_per": None, "best": []}
    latest = latest_starts(transducer)
    registers = {r for live, start in zip(transducer.live(), latest) for r in live if r != start}
    best = {r for values in best_values(transducer) for r, _ in values if r in registers}
    begins_once = not transducer.initial <= transducer.skipping - transducer.final
    return {
        "keeps": "latest starts",
        "reason": "SELECT NONE asks only at which events there are matches",
        "one_per": ["set of states" if begins_once else "state", *(f"r{r}" for r in sorted(registers))],
        "best": [] if begins_once else [f"r{r}" for r in sorted(best)],
    }


def _evaluation(select: Select, transducer: Transducer, tables: TransducerTables | None) -> _Facts:
    """The conditions evaluated once per event, and those evaluated at run time; a schema also tells how."""
    registers = transducer.registers
    tests = dict.fromkeys(test for t in transducer.transitions for test in conjuncts(t.test))
    atoms = dict.fromkeys(atom for t in transducer.transitions for atom in t.atoms)
    facts: _Facts = {
        "tests": [{"test": show_condition(test, registers), "per": None} for test in tests],
        "expressions": None,
        "atoms": [{"atom": show_condition(atom, registers), "as": None} for atom in atoms],
        "columns": None,
        "scan": None,
    }
    if tables is None:
        return facts
    registers = tables.transducer.registers
    evaluation = Evaluation.of(tables)
    by_string = {number: name for name, numbers in evaluation.by_string.items() for number in numbers}
    facts["tests"] = [
        {
            "test": show_condition(test, registers),
            "per": f"distinct value of {by_string[k]}" if k in by_string else "event",
        }
        for k, test in enumerate(tables.tests)
        if (test.operand if isinstance(test, Not) else test) not in (TICK, PAUSE)
    ]
    facts["expressions"] = [
        {
            "expression": show_expression(c.expression, registers)
            if c.expression is not None
            else f"{'begin' if c.bound else 'measure'} of the window {show(c.window) if c.window else ''}",
            "type": "float64" if c.as_float else "int64",
        }
        for c in tables.columns
    ]
    rows = iter(tables.atoms.rows)
    facts["atoms"] = list(
        {
            (text := show_condition(atom, registers)): {
                "atom": text,
                "as": "program" if next(rows)[layout.A_OPERATOR] == layout.PROGRAM else "comparison",
            }
            for move in tables.moves.rows
            for atom in move.transition.atoms
        }.values()
    )
    facts["columns"] = _columns(select, tables)
    program = scan_program(tables, select.partition, None, evaluation)
    facts["scan"] = {
        "by_columns": [
            {"test": show_condition(tables.tests[k], registers), "because": reason}
            for k, reason in program.computed.items()
        ],
        "left_out": _left_out(program, tables),
    }
    return facts


def _left_out(program: ScanProgram, tables: TransducerTables) -> list[str]:
    """Which events a scan leaves out before configurations see any, and why not others."""
    guards, found = program.guards, program.contiguity
    lines = []
    if guards is not None and guards.narrows:
        count = len(guards.guards)
        fail = "fail the condition" if count == 1 else f"satisfy none of the {count} conditions"
        lines.append(f"those that {fail} under which an event matters, tested on whole columns")
    if not isinstance(found, str) and found.undecided is None:
        keyed = " of a key" if found.keyed else ""
        return [*lines, f"nearly all: matches are consecutive events{keyed}, found and counted on whole columns"]
    if not lines:
        every = guards is None or tables.counted
        reason = "every event counts" if every else "a condition compares something other than a column with a constant"
        lines.append(f"none by values alone: {reason}")
    if isinstance(found, str):
        lines.append(f"none by their neighbours: {found}")
    else:
        row = f"row of {found.length} consecutive events" if found.length else "row of consecutive events"
        lines.append(f"those in no {row} that may match; the automaton decides about the rest: {found.undecided}")
    if isinstance(found, str) and empties_states(tables):
        lines.append("those that change no state in which partial matches may wait")
        if counted_states(tables, program.outputs):
            lines.append("most others until matches are listed: runs are counted by state")
    flow = program.flow
    if isinstance(flow, str):
        lines.append(f"none by the states of runs: {flow}")
    elif isinstance(found, str):
        keyed = " of the same key" if flow.keyed else ""
        if flow.backwards and flow.window is not None:
            lines.append(f"those after which no events{keyed} can complete a match within {show(flow.window)}")
        if flow.strict is not None:
            lines.append("those that the next event of the same key does not continue")
        elif flow.forwards:
            lines.append(f"those that no partial match{keyed} can take")
    if tables.ticking:
        told = program.absence
        single = "matches are single events that nothing follows, found on whole columns"
        lines.append(f"none by deadlines: {told}" if isinstance(told, str) else f"nearly all: {single}")
    return lines


def _columns(select: Select, tables: TransducerTables) -> _Facts:
    schema = tables.schema
    recognition = columns_read(tables, select) | {schema.type, schema.time}
    results = Report(select, schema, positions=True, position=None).stored
    return {
        "recognition": [name for name in schema.attributes if name in recognition],
        "results": list(results),
        "unused": [name for name in schema.attributes if name not in recognition and name not in results],
    }


def _threads(select: Select, transducer: Transducer, schema: Schema | None) -> _Facts:
    division = divided(select, transducer, schema, threads=True)
    return {"parallel": "by time" if division.window is not None else "one thread", "reason": division.reason}


def _relevant(select: Select, transducer: Transducer, schema: Schema | None) -> _Facts:
    """Which events can be left out before recognition, where positions in the whole stream are not asked for."""
    if schema is None:
        found = relevance_of_transducer(transducer)
    else:
        found = relevant_events(select, transducer, schema, counted=needs_positions(select, schema))
    return {
        "condition": None if found.condition == TRUE else show_condition(found.condition, transducer.registers),
        "reasons": list(found.reasons),
    }


def _spark(select: Select, transducer: Transducer, schema: Schema | None) -> _Facts:
    by_key = separable_by_key(select, schema)
    if by_key:
        reason = "each key has its own matches"
    elif not select.partition:
        reason = "without PARTITION BY every event may belong to every match"
    elif select.consume is Consumption.ANY:
        reason = "CONSUME BY ANY consumes across keys"
    elif waits_for_time(select.formula):
        reason = "events of one key show that deadlines of others have passed"
    elif numbers_matches(select.projection):
        reason = "MATCH_NUMBER() counts the matches of all keys"
    else:
        reason = "Spark might distinguish values that are one key for the engine"
    division = divided(select, transducer, schema)
    return {
        "parallel": "by key" if by_key else "one ordered task",
        "reason": reason,
        # Of a large input, if it has times or lies in files; `cerflow.spark.explain` knows whether.
        "slices": None if division.window is None else division.reason,
        "by_clock": not by_key and separable_by_clock(select, schema),
        "columns": None if schema is None else list(columns_needed(select, schema)),
        "positions_read": None if schema is None else needs_positions(select, schema),
    }
