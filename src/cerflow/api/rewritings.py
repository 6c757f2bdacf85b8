"""Formulas rewritten into others that mean the same: the public names of the rewritings.

Each takes a formula as text, tree, in the notation of the builder or as a query, and gives a tree back, which can be
matched and compared like any other, and whose ``str`` is its text.
A formula that cannot be rewritten raises `cerflow.UnsupportedQueryError`.

>>> import cerflow
>>> from cerflow.rewritings import push_down_filters, sequences_to_strict
>>> push_down_filters("(A ; B)+ FILTER A.price > 10")
<Iteration ((A FILTER A.price > 10) ; B)+>
>>> print(sequences_to_strict("(A ; B) : C"))
A ; STRICT(B ; C)
"""

from cerflow.automata.compile.formulas import compile_formula as to_transducer
from cerflow.automata.model.runs import matches as transducer_matches
from cerflow.automata.model.transducer import Transducer
from cerflow.base.events import Stream
from cerflow.logic.analysis.first_order import Property, bound_variables, defined_variables, is_safe, is_well_formed
from cerflow.theory.from_automata import (
    StarCounterexample,
    compile_star,
    eliminate_conjunctions,
    star_automaton,
    star_counterexample,
)
from cerflow.theory.papers.constructions.operators import star_matches
from cerflow.theory.papers.translations.conversions import star_to_formula, to_formula
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.first_order.properties import (
    disjunctive_normal_form,
    is_bounded,
    is_locally_parametrized,
    safe_form,
)
from cerflow.theory.rewriting.first_order.reading import first_order_to_second_order, second_order_to_first_order
from cerflow.theory.rewriting.first_order.waiting import lp_normal_form
from cerflow.theory.rewriting.labels import push_down_labels, push_down_renames
from cerflow.theory.rewriting.sequences import eliminate_strict_iteration, sequences_to_strict, strict_to_sequences

__all__ = [
    "Property",
    "StarCounterexample",
    "Stream",
    "Transducer",
    "bound_variables",
    "compile_star",
    "defined_variables",
    "disjunctive_normal_form",
    "eliminate_conjunctions",
    "eliminate_strict_iteration",
    "first_order_to_second_order",
    "is_bounded",
    "is_locally_parametrized",
    "is_safe",
    "is_well_formed",
    "lp_normal_form",
    "push_down_filters",
    "push_down_labels",
    "push_down_renames",
    "safe_form",
    "second_order_to_first_order",
    "sequences_to_strict",
    "star_automaton",
    "star_counterexample",
    "star_matches",
    "star_to_formula",
    "strict_to_sequences",
    "to_formula",
    "to_transducer",
    "transducer_matches",
]
