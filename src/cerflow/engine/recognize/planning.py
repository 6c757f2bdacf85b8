"""The division of a query: which part becomes its automaton, and which matches the engine compares itself."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from cerflow.automata.compile.deadlines import waits_for_ticks
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.compile.selection import next_of_each_start, with_few_tests
from cerflow.automata.model.clock import has_ticks
from cerflow.automata.model.transducer import Accumulation, Transducer, registers_read
from cerflow.automata.optimise.ambiguity import ambiguous, enlarged
from cerflow.automata.optimise.detection import for_detection
from cerflow.automata.optimise.output_determinization import determinized_on_outputs
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.results.report import kept_labels
from cerflow.language import formula as f
from cerflow.language.node import Node, transform, walk
from cerflow.language.select import Consumption, ProjectionKind, Select
from cerflow.language.sremo import with_fields
from cerflow.logic.analysis.scopes import condition_labels, relation_names
from cerflow.logic.rewriting.bounds import with_implied_bounds
from cerflow.logic.rewriting.extremes import with_implied_values
from cerflow.logic.rewriting.implied import is_gapless, with_windows_of_gaps, without_implied_times
from cerflow.logic.rewriting.keys import with_implied_keys
from cerflow.logic.rewriting.rebuild import labels_beside_types
from cerflow.logic.rewriting.times import with_times_as_numbers

#: The engine's numbers of the strategies that it evaluates itself.
_STRATEGIES = {f.Strategy.NEXT: layout.EARLIEST, f.Strategy.LAST: layout.LATEST}


def compile_select(select: Select) -> Transducer:
    """The transducer that evaluates a query; raises `UnsupportedQueryError` if the engine cannot evaluate it."""
    return made_ready(select, transducer_of(select))


def fitted(select: Select, schema: Schema, *, times: bool = True) -> Select:
    """The query as it is evaluated on events of a schema.

    Fields of structs replace registers that are never written, and windows of time replace windows on the time column;
    windows that follow from gaps, conditions on events that follow from others and keys that follow from equalities are
    added; conditions on times and keys that always hold, tests of the only type and of absent ones, and arithmetic on
    ``times`` are removed.

    With ``times=False`` the query must be its own `with_times_as_numbers`; the schema may lack columns of precomputed
    conditions.
    """
    select = with_fields(select, schema.attributes)
    select = with_windows_of_gaps(_with_windows_of_time(select, schema), schema)
    select = without_implied_times(select, schema)
    select = with_implied_bounds(with_implied_values(select, schema), schema)
    select = with_implied_keys(select, schema)
    select = _of_known_types(select, schema)
    return with_times_as_numbers(select, schema) if times else select


def _of_known_types(select: Select, schema: Schema) -> Select:
    """The query on events of which something is known: their only type, or types that none of them has."""
    only, absent, types = schema.only_type, schema.absent_types, relation_names(select)

    def known(node: Node) -> Node:
        if isinstance(node, f.OfAnyType):
            return replace(node, only=only, absent=absent)
        if isinstance(node, f.As) and isinstance(node.operand, f.OfAnyType) and node.label not in types:
            # The event has the label anyway.
            return replace(node, operand=replace(node.operand, absent=node.operand.absent | {node.label}))
        return node

    return transform(select, known)


def absent_so_far(select: Select, schema: Schema, read: Collection[str]) -> frozenset[str]:
    """The types that are taken for absent until an event has one: they are labels, and EVENT would give it both.

    There are none if the type is not among the columns ``read``.
    """
    known = schema.only_type is not None or schema.absent_types or schema.type not in read
    return frozenset() if known else labels_beside_types(select)


def _with_windows_of_time(select: Select, schema: Schema) -> Select:
    """The query with windows of time in place of windows on the numeric time column; itself without such windows.

    Both mean the same. But time never decreases in the whole stream, so a window that is over for one key is over for
    all, and the checker refuses late events. A window that is not a whole number of microseconds remains.
    """
    if schema.time is None or not schema.kind(schema.time).numeric:
        return select

    def of_time(current: Node) -> Node:
        if isinstance(current, f.AttributeWindow) and current.attribute == schema.time:
            # A float means the decimal as written, unless it is too large to have fractions.
            exact = isinstance(current.size, int) or abs(current.size) >= 2**53
            size = (Fraction(current.size) if exact else Fraction(repr(current.size))) * schema.microseconds
            if size.denominator == 1:
                return f.DurationWindow(size.numerator, span=current.span)
        return current

    # Only events of the same key show a deadline at a value of an attribute.
    apart = any(isinstance(node, f.NotFollowedBy) and of_time(node.window) is not node.window for node in walk(select))
    return select if apart else transform(select, of_time)


def made_ready(select: Select, transducer: Transducer) -> Transducer:
    """The transducer of a query (see `transducer_of`) as the engine evaluates it."""
    return for_detection(transducer) if detects_only(select) else with_one_run_each(transducer)


def detects_only(select: Select) -> bool:
    """Whether the query asks only whether an event completes matches, not for the matches."""
    return select.projection.kind is ProjectionKind.NONE


def with_one_run_each(transducer: Transducer) -> Transducer:
    """The transducer, determinised on its outputs if that is necessary and possible.

    If it is necessary but impossible, the engine joins runs of equal outputs while it recognises.
    """
    determinized = determinized_on_outputs(transducer) if ambiguous(transducer) else None
    return transducer if determinized is None else replace(determinized, one_support=transducer.one_support)


def transducer_of(select: Select) -> Transducer:
    """The transducer of the formula, window and projection of a query; raises as `compile_select` does."""
    divided = _divided(select)
    transducer = _compiled(divided, select)
    if divided.strategy is f.Strategy.MAX:
        return with_few_tests(transducer)
    if divided.strategy in _STRATEGIES and not has_ticks(transducer):
        with suppress(UnsupportedQueryError):
            if transducer.window is None and not divided.by and _chooses_well(divided, transducer):
                chosen = _compiled(_with_strategy_inside(divided), select)
                return replace(chosen, one_support=True) if _keeps_little(chosen) else transducer
            if divided.strategy is f.Strategy.NEXT and transducer.window is not None:
                return next_of_each_start(transducer)
    return transducer


def _compiled(divided: Select, select: Select) -> Transducer:
    """The transducer of the formula of a query that is ``divided`` (see `_divided`)."""
    return compile_formula(
        divided.formula,
        window=divided.window,
        keep=kept_labels(select),
        named=frozenset(label for item in select.projection.items for label in condition_labels(item)),
        # Strategies compare supports before the projection.
        marks=divided.strategy in _STRATEGIES and not divided.by,
        choice=divided.strategy if divided.strategy is f.Strategy.MAX or divided.by else None,
        by=compared_labels(select),
    )


def _chooses_well(divided: Select, transducer: Transducer) -> bool:
    """Whether an automaton that chooses follows few runs, where the engine might compare ever more."""
    if len(transducer.transitions) > limits.CHOOSING_TRANSITIONS or is_gapless(divided.formula):
        return False
    # Runs that end with an event differ by what they have gathered, unless they keep values of single events.
    gathers = any(r.keeps is not Accumulation.VALUE for r in transducer.registers)
    gathers |= any(registers_read(write.row) for t in transducer.transitions for write in t.writes)
    return not gathers and (divided.strategy is f.Strategy.NEXT or len(transducer.registers) > 0)


def _keeps_little(transducer: Transducer) -> bool:
    """Whether each collection of the values of other runs needs only its least or greatest row."""
    sets = [register.covering for register in transducer.registers if register.keeps is Accumulation.SET]
    return all(len(covering) == 1 and covering[0] is not Operator.EQ for covering in sets)


def strategy_of(select: Select, transducer: Transducer) -> tuple[int, int]:
    """Two strategies, as numbers of `cerflow.engine.layout`: for recognition, and for the reading of matches.

    In a window the second one is cheaper, since during recognition every start would need a choice of its own. The
    automaton may have chosen already.
    """
    if transducer.one_support and transducer.window is None:
        return layout.EVERYTHING, layout.EVERYTHING
    divided = _divided(select)
    if divided.strategy is f.Strategy.MAX:
        by = compared_labels(select)
        compared = transducer.window is not None and enlarged(transducer, by, before=True)
        return layout.EVERYTHING, layout.LARGEST if compared else layout.EVERYTHING
    strategy = layout.EVERYTHING if divided.by else _STRATEGIES.get(divided.strategy, layout.EVERYTHING)
    if strategy != layout.EVERYTHING and is_gapless(divided.formula) and not enlarged(transducer, frozenset()):
        # All matches of an event have the same events.
        return layout.EVERYTHING, layout.EVERYTHING
    if strategy == layout.LATEST and is_gapless(divided.formula) and select.consume is not Consumption.NONE:
        # An event is in the matches of at most one detection, so reading them visits little.
        return layout.EVERYTHING, strategy
    if transducer.window is not None and (strategy == layout.LATEST or transducer.one_support):
        return layout.EVERYTHING, strategy
    return strategy, layout.EVERYTHING


def compared_labels(select: Select) -> frozenset[str]:
    """The labels whose events the strategy compares; empty if it compares all events."""
    return frozenset(str(reference.label) for reference in _divided(select).by)


def limit_of(select: Select) -> int | None:
    """The greatest number of matches per detecting event, None if unlimited."""
    if select.strategy is f.Strategy.ANY or select.projection.kind is ProjectionKind.NONE:
        return 1
    return select.limit


def _divided(select: Select) -> Select:
    """The query with MAX, and NEXT and LAST without labels, as its strategy; STRICT and the others in its formula.

    The engine evaluates the strategy of the query, since it compares whole matches at less cost; the automaton
    evaluates the formula, also NEXT and LAST with labels in queries with deadlines. STRICT may move there because it
    gives the same before and after the window.

    Without output a strategy of the whole query makes no difference: among finitely many matches of an event,
    one is always best. STRICT does make a difference, as it does not compare matches.
    """
    if detects_only(select):
        select = _without_preference(select)
    divided = _with_strategy_outside(select)
    if divided.strategy in (f.Strategy.MAX, *_STRATEGIES) and not divided.by and is_gapless(divided.formula):
        # Of two matches without gaps that end together, the longer one has all events of the other, so these strategies
        # choose the same. LAST is the cheapest.
        return replace(divided, strategy=f.Strategy.LAST)
    return divided


def _with_strategy_outside(select: Select) -> Select:
    """The query with the strategy around its whole formula as its own, or with its STRICT in its formula."""
    formula = select.formula
    match select.strategy:
        case f.Strategy.STRICT:
            return replace(_with_strategy_inside(replace(select, window=None)), window=select.window)
        case f.Strategy.NEXT | f.Strategy.LAST if select.by:
            if waits_for_ticks(formula):
                # In a formula it would choose at each deadline, not at an event that shows several.
                return select
            return _with_strategy_inside(select)
        case f.Strategy.ALL | f.Strategy.ANY:
            if isinstance(formula, f.Selection) and select.window is None and not waits_for_ticks(formula):
                by = formula.by
                if formula.strategy is f.Strategy.MAX or (formula.strategy in _STRATEGIES and not by):
                    return replace(select, formula=formula.operand, strategy=formula.strategy, by=by)
    return select


def _with_strategy_inside(select: Select) -> Select:
    """The query with its window, and its strategy around that, in its formula."""
    formula, window = select.formula, select.window
    inner = formula if window is None else f.Within(formula, window)
    chosen = f.Selection(select.strategy, inner, select.by, span=formula.span)
    return replace(select, formula=chosen, window=None, strategy=f.Strategy.ALL, by=())


def _without_preference(select: Select) -> Select:
    """The query without the strategies that only choose among the matches of an event."""
    if select.strategy is not f.Strategy.STRICT:
        select = replace(select, strategy=f.Strategy.ALL, by=())
        # A window comes before the strategy of the query, but after one in the formula.
        while select.window is None and isinstance(select.formula, f.Selection):
            if select.formula.strategy is f.Strategy.STRICT:
                break
            select = replace(select, formula=select.formula.operand)
    return select
