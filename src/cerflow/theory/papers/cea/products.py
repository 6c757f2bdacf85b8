"""ALL and UNLESS of UCEA (P2 §5.2), by the engine's constructions for these operators; AND is `intersect`."""

from __future__ import annotations

from cerflow.automata.compile.negation import unless
from cerflow.automata.compile.products import product_all
from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.registers import RegisterFile
from cerflow.automata.optimise.simplify import simplify
from cerflow.theory.papers.model.cea import UnaryComplexEventAutomaton
from cerflow.theory.papers.model.models import CEA, UCEA, FreeA, defined_for
from cerflow.theory.papers.translations.cea_models import as_unary_automaton
from cerflow.theory.papers.translations.engine_model import from_engine, to_engine


@defined_for(CEA, UCEA)
def all_of(left: FreeA, right: FreeA) -> UnaryComplexEventAutomaton:
    """``A1 ALL A2``: unions of a complex event of each; one of the two reads the first event, and one the last.

    Each side may begin later than the other, and be done earlier.
    """
    return _finished(product_all(_fragment(left), _fragment(right)))


@defined_for(CEA, UCEA)
def unless_found(automaton: FreeA, excluded: FreeA) -> UnaryComplexEventAutomaton:
    """``A1 UNLESS A2``: complex events of the first, if the second has none on any of the events read.

    A run of the second may begin with any of these events and end with any. Raises `UnsupportedQueryError` for a too
    large result.
    """
    return _finished(unless(_fragment(automaton), _fragment(excluded), RegisterFile()))


def _fragment(automaton: FreeA) -> Fragment:
    return Fragment.of(to_engine(automaton))


def _finished(fragment: Fragment) -> UnaryComplexEventAutomaton:
    return as_unary_automaton(from_engine(simplify(fragment, (), None, frozenset())).trimmed())
