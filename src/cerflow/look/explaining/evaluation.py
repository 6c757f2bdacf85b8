"""Facts about the automaton of a query, and where each part of it is evaluated."""

from __future__ import annotations

from cerflow.automata.model import diagrams as d
from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.automata.model.transducer import Transducer
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.automata.optimise.detection import best_values, latest_starts
from cerflow.automata.relevance import relevance_of_transducer
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.events.signatures import columns_read
from cerflow.engine.pushdown.relevance import relevant_events
from cerflow.engine.recognize import columns_needed as needed
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.planning import detects_only
from cerflow.engine.scan.program import compiler, effects
from cerflow.engine.scan.program.joins import Joinable
from cerflow.engine.slices.division import divided
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Not
from cerflow.language.printer import show
from cerflow.language.select import Select
from cerflow.logic.conditions.connectives import TRUE, conjuncts
from cerflow.logic.rewriting.keys import ImpliedKey, implied_keys, partitioned_by
from cerflow.look.explaining.text import UNBROKEN, Facts, Told, cut, in_lines, listed, pairs, relevant_lines, table
from cerflow.look.pictures.diagram import KEPT

SECTIONS = ("automaton", "recognition", "evaluation", "relevant_events", "threads", "spark")


def sections(
    select: Select,
    transducer: Transducer,
    compiled: Transducer | None,
    plan: Plan | None,
    schema: Schema | None,
) -> dict[str, Told]:
    """The facts by name, in the order of text; ``compiled`` is the automaton before it was determinised or reduced."""
    if schema is None:
        found = relevance_of_transducer(transducer)
    else:
        counted = needed.needs_positions(select, schema)
        found = relevant_events(select, transducer, schema, counted=counted)
    condition = None if found.condition == TRUE else d.show_condition(found.condition, transducer.registers)
    relevant = {"condition": condition, "reasons": list(found.reasons)}
    return {
        "automaton": _automaton(transducer, compiled, detects_only(select)),
        "recognition": _recognition(select, transducer),
        "evaluation": _evaluation(select, transducer, plan),
        # Events that can be left out before recognition, where positions in the whole stream are not asked for.
        "relevant_events": Told(relevant, "Events that matter", relevant_lines(relevant)),
        "threads": _threads(select, transducer, schema),
        "spark": _spark(select, transducer, schema),
    }


def _automaton(transducer: Transducer, compiled: Transducer | None, detecting: bool) -> Told:
    registers = transducer.registers
    before = None if transducer is compiled or compiled is None else {"states": compiled.states}
    initial, final = sorted(transducer.initial), sorted(transducer.final)
    unambiguous = not ambiguous(transducer)
    facts = {
        "states": transducer.states,
        "initial": initial,
        "final": final,
        "skipping": sorted(transducer.skipping),
        "unambiguous": unambiguous,
        "determinized_from": None if detecting else before,
        "reduced_from": before if detecting else None,
        "registers": [
            {"name": f"r{k}", "holds": r.meaning, "keeps": str(r.keeps), "fields": r.fields}
            | {"window": None if r.window is None else show(r.window)}
            for k, r in enumerate(registers)
        ],
        "transitions": [
            {
                "source": t.source,
                "target": t.target,
                "guard": d.show_guard(t, registers),
                "test": [d.show_condition(test, registers) for test in conjuncts(t.test)],
                "atoms": [d.show_condition(atom, registers) for atom in t.atoms],
                "labels": d.show_labels(t.labels),
                "writes": [d.show_write(w, registers) for w in t.writes],
            }
            for t in transducer.transitions
        ],
    }
    if before is not None and detecting:
        runs = f"from any number of runs, which SELECT NONE does not count ({before['states']} states without that)"
    elif not unambiguous:
        runs = "may come from several runs; runs with equal outputs are joined at run time"
    elif before is None:
        runs = "each comes from one run (unambiguous)"
    else:
        runs = f"each comes from one run: determinised on its outputs (before: {before['states']} states, ambiguous)"
    ends = [listed([f"q{q}" for q in states]) for states in (initial, final)]
    lines = table(
        [
            ("states", f"{transducer.states} (initial {ends[0]}, final {ends[1]})"),
            ("transitions", str(len(transducer.transitions))),
            ("registers", str(len(registers))),
            ("matches", runs),
        ]
    )
    kept = [
        (f"r{k}", f"{r.meaning}: {KEPT[str(r.keeps)]}" + (f", for WITHIN {show(r.window)}" if r.window else ""))
        for k, r in enumerate(registers)
    ]
    if kept:
        lines += ["", *table(cut(kept, "registers"))]
    edges = []
    for t in facts["transitions"]:  # type: ignore[attr-defined]
        # Lines break between the parts, not within them.
        rest = " ".join(part.replace(" ", UNBROKEN) for part in (f"| {t['labels']}", *(f"↓ {w}" for w in t["writes"])))
        edges.append((f"q{t['source']} → q{t['target']}", f"{t['guard']} {rest}"))
    return Told(facts, "Automaton", [*lines, "", *table(cut(edges, "transitions"))] if edges else lines)


def _recognition(select: Select, transducer: Transducer) -> Told:
    """The part of partial matches that is kept, and why; for mere detection also the facts that tell them apart."""
    if not detects_only(select):
        reason = "the matches are asked for, or their number"
        facts: Facts = {"keeps": "matches", "reason": reason, "one_per": None, "best": []}
        return Told(facts, "Recognition", table([("kept", f"a graph of all matches: {reason}")]))
    latest = latest_starts(transducer)
    registers = {r for live, start in zip(transducer.live(), latest) for r in live if r != start}
    best = {r for values in best_values(transducer) for r, _ in values if r in registers}
    begins_once = not transducer.initial <= transducer.skipping - transducer.final
    one, contents = "set of states" if begins_once else "state", [f"r{r}" for r in sorted(registers)]
    reason = "SELECT NONE asks only at which events there are matches"
    named = [] if begins_once else [f"r{r}" for r in sorted(best)]
    facts = {"keeps": "latest starts", "reason": reason, "one_per": [one, *contents], "best": named}
    content = f" and content of {listed(contents)}" if contents else ""
    rows = [
        ("kept", f"detection only, the latest start of partial matches: {reason}"),
        ("at most", f"one configuration for each {one}{content} (in each partition)"),
    ]
    if named:
        rows.append(("of these", f"those that no other one beats in both {listed(named)} and start"))
    return Told(facts, "Recognition", table(rows))


def _evaluation(select: Select, transducer: Transducer, plan: Plan | None) -> Told:
    """The conditions evaluated once per event, and those evaluated at run time; a schema also tells how."""
    registers = transducer.registers
    tests = dict.fromkeys(test for t in transducer.transitions for test in conjuncts(t.test))
    atoms = dict.fromkeys(atom for t in transducer.transitions for atom in t.atoms)
    facts: Facts = {
        "tests": [{"test": d.show_condition(test, registers), "per": None} for test in tests],
        "expressions": None,
        "atoms": [{"atom": d.show_condition(atom, registers), "as": None} for atom in atoms],
        "columns": None,
        "scan": None,
    }
    if plan is not None:
        facts |= _with_columns(plan)
    shown = [(e["test"], "" if e["per"] is None else f"once per {e['per']}") for e in facts["tests"]]
    lines = ["once per event, on columns", *(pairs(cut(shown, "tests")) or ["  nothing"])]
    if facts["expressions"]:
        lines += in_lines("turned into columns, for registers and comparisons with them")
        lines += pairs([(e["expression"], e["type"]) for e in facts["expressions"]])
    if facts["atoms"]:
        kinds = {None: "", "comparison": "a comparison", "program": "a small program"}
        lines.append("compared with registers at run time")
        lines += pairs(cut([(e["atom"], kinds[e["as"]]) for e in facts["atoms"]], "atoms"))
    if plan is not None:
        columns, scan = facts["columns"], facts["scan"]
        computed = [f"{each['test']}  ({each['because']})" for each in scan["by_columns"]]
        found = [
            _WAYS[scan["found"]["way"]],
            *(f"not {_WAYS[way]}: {why}" for way, why in scan["found"]["not"].items()),
        ]
        lines += table(
            [
                *(("matches are found" if k == 0 else "", line) for k, line in enumerate(found)),
                *(("evaluated by columns" if k == 0 else "", line) for k, line in enumerate(computed)),
                *(("left out before" if k == 0 else "", line) for k, line in enumerate(scan["left_out"])),
                ("columns read", listed(columns["recognition"])),
                ("kept for results", listed(columns["results"])),
                ("not read", listed(columns["unused"])),
            ]
        )
    return Told(facts, "Evaluation", lines)


def _with_columns(plan: Plan) -> Facts:
    """The facts of evaluation that depend on a schema."""
    tables, schema, program, results = plan.tables, plan.schema, plan.scan, plan.report.stored
    registers = tables.transducer.registers
    per = {k: f"distinct value of {name}" for name, numbers in plan.evaluation.by_string.items() for k in numbers}
    recognition = columns_read(tables, plan.evaluated) | {schema.type, schema.time}
    tests = [
        {"test": d.show_condition(test, registers), "per": per.get(k, "event")}
        for k, test in enumerate(tables.tests)
        if (test.operand if isinstance(test, Not) else test) not in (TICK, PAUSE)
    ]
    expressions = []
    for c in tables.columns:
        text = f"{'begin' if c.bound else 'measure'} of the window {show(c.window) if c.window else ''}"
        text = text if c.expression is None else d.show_condition(c.expression, registers)
        expressions.append({"expression": text, "type": "float64" if c.as_float else "int64"})
    atoms = {}
    for atom, row in zip((atom for move in tables.moves.rows for atom in move.transition.atoms), tables.atoms.rows):
        text = d.show_condition(atom, registers)
        atoms[text] = {"atom": text, "as": "program" if row[layout.A_OPERATOR] == layout.PROGRAM else "comparison"}
    columns = {
        "recognition": [name for name in schema.attributes if name in recognition],
        "results": list(results),
        "unused": [name for name in schema.attributes if name not in recognition and name not in results],
    }
    computed = [
        {"test": d.show_condition(tables.tests[k], registers), "because": reason}
        for k, reason in program.computed.items()
    ]
    scan = {"by_columns": computed, "left_out": _left_out(program, tables), "found": _found(program, tables)}
    kinds = list(atoms.values())
    return {"tests": tests, "expressions": expressions, "atoms": kinds, "columns": columns, "scan": scan}


#: How the matches of a batch may be found, the fastest first.
_WAYS = {
    "consecutive": "as consecutive events, on whole columns",
    "single": "as single events before a deadline, on whole columns",
    "joined in a table": "by joining the events of a whole table where few combinations are possible",
    "joined": "by joining events where few combinations are possible",
    "automaton": "by the automaton, event by event",
}


def _found(program: compiler.ScanProgram, tables: TransducerTables) -> Facts:
    """How the matches of a batch are found, and why not in the ways that would be faster."""
    ways: dict[str, object] = {"single": program.absence} if tables.ticking else {}
    ways |= {"consecutive": program.contiguity, "joined": program.join}
    refused: dict[str, str] = {}
    for way, found in ways.items():
        if not isinstance(found, str):
            within = isinstance(found, Joinable) and found.within
            return {"way": f"{way} in a table" if within else way, "not": refused}
        refused[way] = found
    return {"way": "automaton", "not": refused}


def _left_out(program: compiler.ScanProgram, tables: TransducerTables) -> list[str]:
    """Which events a scan leaves out before configurations see any, and why not others."""
    guards, flow = program.guards, program.flow
    lines = [f"while no event has the type {listed(sorted(program.absent))}"] if program.absent else []
    assumed = len(lines)
    if guards is not None and guards.narrows:
        count = len(guards.guards)
        fail = "fail the condition" if count == 1 else f"satisfy none of the {count} conditions"
        lines.append(f"those that {fail} under which an event matters, tested on whole columns")
    if not isinstance(program.contiguity, str):
        return lines
    if len(lines) == assumed:
        every = guards is None or tables.counted
        reason = "every event counts" if every else "a condition compares something other than a column with a constant"
        lines.append(f"none by values alone: {reason}")
    if effects.empties_states(tables):
        lines.append("those that change no state in which partial matches may wait")
        if effects.counted_states(tables, program.outputs):
            lines.append("most others until matches are listed: runs are counted by state")
    if isinstance(flow, str):
        lines.append(f"none by the states of runs: {flow}")
    else:
        keyed = " of the same key" if flow.keyed else ""
        if flow.backwards and flow.window is not None:
            lines.append(f"those after which no events{keyed} can complete a match within {show(flow.window)}")
        if flow.waits:
            lines.append(f"those that no partial match{keyed} can take on its way to a deadline that nothing prevents")
        elif flow.by_key is not None:
            lines.append(f"those that the next event{keyed} does not continue")
        elif flow.forwards:
            lines.append(f"those that no partial match{keyed} can take")
        if flow.leads.valued:
            lines.append("those whose values no earlier or later event goes with")
    return lines


def _threads(select: Select, transducer: Transducer, schema: Schema | None) -> Told:
    division = divided(select, transducer, schema, threads=True)
    by_time = division.window is not None
    how = "in slices of the stream, in parallel" if by_time else "in one thread"
    facts = {"parallel": "by time" if by_time else "one thread", "reason": division.reason}
    return Told(facts, "With threads", table([("evaluated", f"{how}: {division.reason}")]))


def _spark(select: Select, transducer: Transducer, schema: Schema | None) -> Told:
    division, implied, keyed = divided(select, transducer, schema), list[ImpliedKey](), select
    if schema is not None and not (
        needed.separable_by_key(select, schema) or needed.separable_by_clock(select, schema)
    ):
        # As `cerflow.spark` does for a batch.
        implied = implied_keys(select, schema)
        keyed = partitioned_by(select, implied)
    by_key = needed.separable_by_key(keyed, schema) and not (implied and division.window is not None)
    reason = "each key has its own matches" if by_key else needed.keys_together(select, schema)
    by_what = f" ({listed([key.attribute for key in implied])}, in batches)" if implied else ""
    # Spark cuts slices only of a large input that has times or consists of files; `cerflow.spark.explain` tells.
    slices = None if division.window is None else division.reason
    by_clock = not by_key and needed.separable_by_clock(keyed, schema)
    columns = None if schema is None else list(needed.columns_needed(select, schema))
    positions = None if schema is None else needed.needs_positions(select, schema)
    facts = {
        "parallel": "by key" if by_key else "one ordered task",
        "reason": reason,
        "slices": slices,
        "by_clock": by_clock,
        "implied_keys": [key.attribute for key in implied] if by_key or by_clock else [],
        "columns": columns,
        "positions_read": positions,
    }
    rows = []
    if slices is not None:
        where = f"in slices of the stream where its order allows it: {slices} (see cerflow.spark.explain)"
        rows.append(("large input", where))
    if by_clock:
        shown = "a clock shows deadlines, and the times of all events say when they are known"
        rows.append(("or" if rows else "large input", f"in parallel by key{by_what}: {shown}"))
    otherwise = f"{f'in parallel by key{by_what}' if by_key else 'in one ordered task'}: {reason}"
    rows.append(("else" if rows else "evaluated", otherwise))
    if columns is not None:
        rows.append(("columns sent", listed(columns)))
    if positions:
        rows.append(("positions", "read by the query, so events are numbered first"))
    return Told(facts, "On Spark", table(rows))
