"""How a query is divided between its automaton, what the engine compares while it runs, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

from cerflow.analysis.scopes import condition_labels
from cerflow.automata.ambiguity import ambiguous
from cerflow.automata.compile import compile_formula
from cerflow.automata.detection import for_detection
from cerflow.automata.outputs import determinized_on_outputs
from cerflow.automata.transducer import Transducer
from cerflow.engine import layout
from cerflow.engine.results import kept_labels
from cerflow.language.formula import Selection, Strategy, Within
from cerflow.language.select import ProjectionKind, Select

__all__ = [
    "compile_select",
    "detects_only",
    "limit_of",
    "made_ready",
    "strategy_of",
    "transducer_of",
    "with_one_run_each",
]

#: What the engine calls the strategies that it evaluates itself.
_STRATEGIES = {Strategy.NEXT: layout.EARLIEST, Strategy.LAST: layout.LATEST}


def compile_select(select: Select) -> Transducer:
    """The transducer that evaluates a query; raises `UnsupportedQueryError` for what the engine cannot evaluate."""
    return made_ready(select, transducer_of(select))


def made_ready(select: Select, transducer: Transducer) -> Transducer:
    """The transducer of a query (see `transducer_of`) as the engine evaluates it."""
    return for_detection(transducer) if detects_only(select) else with_one_run_each(transducer)


def detects_only(select: Select) -> bool:
    """Whether nobody asks for the matches of an event, only whether there are any."""
    return select.projection.kind is ProjectionKind.NONE


def with_one_run_each(transducer: Transducer) -> Transducer:
    """The transducer determinised on its outputs if it has to be and can be, else itself.

    Where it cannot, the engine joins the runs with equal outputs as it goes.
    """
    return (determinized_on_outputs(transducer) if ambiguous(transducer) else None) or transducer


def transducer_of(select: Select) -> Transducer:
    """The transducer of the formula, window and projection of a query; raises as `compile_select` does."""
    named: set[str] = set()
    for item in select.projection.items:
        named.update(condition_labels(item))
    divided = _divided(select)
    return compile_formula(
        divided.formula,
        window=divided.window,
        keep=kept_labels(select),
        named=frozenset(named),
        # Strategies compare supports before the projection.
        marks=divided.strategy in _STRATEGIES,
    )


def strategy_of(select: Select) -> int:
    """What the engine is to compare partial matches by, as a number of `cerflow.engine.layout`."""
    return _STRATEGIES.get(_divided(select).strategy, layout.EVERYTHING)


def limit_of(select: Select) -> int | None:
    """The greatest number of matches per detecting event, None for any."""
    if select.strategy is Strategy.ANY or select.projection.kind is ProjectionKind.NONE:
        return 1
    return select.limit


def _divided(select: Select) -> Select:
    """The same query with NEXT and LAST of all matches as its strategy, and any other strategy in its formula.

    STRICT and MAX are left to the automaton: for STRICT it does not matter whether the window comes before. NEXT and
    LAST cost less where the engine compares whole matches.

    Where only detections are asked for, a strategy of the whole query makes no difference: of finitely many matches
    of an event, if there are any, some are such that none is preferred to them. STRICT does, it compares none.
    """
    if detects_only(select):
        select = _without_preference(select)
    formula, window = select.formula, select.window
    match select.strategy:
        case Strategy.STRICT:
            return replace(
                select, formula=Selection(Strategy.STRICT, formula, span=formula.span), strategy=Strategy.ALL
            )
        case Strategy.MAX:
            inner = formula if window is None else Within(formula, window)
            return replace(
                select, formula=Selection(Strategy.MAX, inner, span=formula.span), window=None, strategy=Strategy.ALL
            )
        case Strategy.ALL | Strategy.ANY:
            if window is None and isinstance(formula, Selection) and formula.strategy in _STRATEGIES:
                return replace(select, formula=formula.operand, strategy=formula.strategy)
    return select


def _without_preference(select: Select) -> Select:
    """The same query without the strategies that only say which of the matches of an event are reported."""
    if select.strategy is not Strategy.STRICT:
        select = replace(select, strategy=Strategy.ALL)
        # A window comes before the strategy of the query, but after one in the formula.
        while select.window is None and isinstance(select.formula, Selection):
            if select.formula.strategy is Strategy.STRICT:
                break
            select = replace(select, formula=select.formula.operand)
    return select
