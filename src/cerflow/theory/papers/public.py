"""The public names of `cerflow.automata`, which imports this module when the first of them is used."""

from cerflow.base.events import Stream
from cerflow.theory.deciding.witnesses import Answer, Witness
from cerflow.theory.papers.cea.compile import compile_cel, compile_cel_star, of_type, star_to_formula, to_formula
from cerflow.theory.papers.cea.products import all_of, unless_found
from cerflow.theory.papers.cea.stages import Stages, stages
from cerflow.theory.papers.cea.star import delete_unlabelled, star_difference, star_matches, with_star_runs
from cerflow.theory.papers.cea.strategies import select_last, select_max, select_next, select_strict
from cerflow.theory.papers.constructions.cea_closure import io_complement, io_determinize, is_io_deterministic
from cerflow.theory.papers.constructions.closure import concatenate, iterate, set_apart, union
from cerflow.theory.papers.constructions.complement import complement, complement_windowed, complete
from cerflow.theory.papers.constructions.determinism import is_deterministic, overlaps
from cerflow.theory.papers.constructions.determinize import determinize_windowed, is_determinizable, subset_construction
from cerflow.theory.papers.constructions.epsilon import eliminate_epsilon
from cerflow.theory.papers.constructions.intersection import intersect
from cerflow.theory.papers.constructions.minimize import minimize
from cerflow.theory.papers.constructions.minterms import Minterm, construct_minterms
from cerflow.theory.papers.constructions.operators import add_label, anchor, filter_label, project_labels, rename_label
from cerflow.theory.papers.constructions.single_register import to_single_register
from cerflow.theory.papers.constructions.streaming import StaggeredCopies, staggered, streaming, with_start_loop
from cerflow.theory.papers.constructions.unroll import Unrolled, unroll
from cerflow.theory.papers.constructions.windows import restrict_to_window
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, show_state
from cerflow.theory.papers.model.cea import (
    ComplexEventAutomaton,
    ComplexEventTransition,
    UnaryComplexEventAutomaton,
    UnaryComplexEventTransition,
)
from cerflow.theory.papers.model.conditions import HEAD
from cerflow.theory.papers.model.faults import (
    AutomatonError,
    ConditionError,
    EpsilonFreeError,
    EpsilonTransitionError,
    LabelSetError,
    MissingRegisterError,
    MissingStateError,
    NotDeterministicError,
    NotDeterminizableError,
    NotMemorylessError,
    RegisterSelectionError,
    SharedRegistersError,
    TransitionKindError,
)
from cerflow.theory.papers.model.kinds import AutomatonKind, kinds
from cerflow.theory.papers.model.pictures import show_edge, to_dot, to_mermaid, to_svg
from cerflow.theory.papers.model.rma import MatchTransition, RegisterMatchAutomaton, as_register_match_automaton
from cerflow.theory.papers.model.runs import (
    Configuration,
    Run,
    accepting_runs,
    accepts,
    matches,
    reached_states,
    reported_matches,
    runs,
)
from cerflow.theory.papers.model.safety import is_register_safe, on_every_trail, unsafe_reads
from cerflow.theory.papers.model.srt import SymbolicRegisterTransducer, SymbolicTransition, as_transducer
from cerflow.theory.papers.translations.cea_models import (
    as_complex_event_automaton,
    as_unary_automaton,
    with_marked_ends,
)
from cerflow.theory.papers.translations.cepl import compile_cepl
from cerflow.theory.papers.translations.engine_model import from_engine, to_engine
from cerflow.theory.papers.translations.equivalence import difference
from cerflow.theory.papers.translations.formulas import from_json
from cerflow.theory.papers.translations.sremo import compile_sremo, registers_of

__all__ = [  # noqa: RUF022  # in plain order, as the other public modules
    "Answer",
    "AutomatonError",
    "AutomatonKind",
    "ComplexEventAutomaton",
    "ComplexEventTransition",
    "ConditionError",
    "Configuration",
    "EpsilonFreeError",
    "EpsilonTransitionError",
    "HEAD",
    "LabelSetError",
    "MARKED",
    "MatchTransition",
    "Minterm",
    "MissingRegisterError",
    "MissingStateError",
    "NotDeterministicError",
    "NotDeterminizableError",
    "NotMemorylessError",
    "RegisterMatchAutomaton",
    "RegisterSelectionError",
    "Run",
    "SKIPPED",
    "SharedRegistersError",
    "Stages",
    "StaggeredCopies",
    "Stream",
    "SymbolicRegisterTransducer",
    "SymbolicTransition",
    "TransitionKindError",
    "UnaryComplexEventAutomaton",
    "UnaryComplexEventTransition",
    "Unrolled",
    "Witness",
    "accepting_runs",
    "accepts",
    "add_label",
    "all_of",
    "anchor",
    "as_complex_event_automaton",
    "as_register_match_automaton",
    "as_transducer",
    "as_unary_automaton",
    "compile_cel",
    "compile_cel_star",
    "compile_cepl",
    "compile_sremo",
    "complement",
    "complement_windowed",
    "complete",
    "concatenate",
    "construct_minterms",
    "delete_unlabelled",
    "determinize_windowed",
    "difference",
    "eliminate_epsilon",
    "filter_label",
    "from_engine",
    "from_json",
    "intersect",
    "io_complement",
    "io_determinize",
    "is_deterministic",
    "is_determinizable",
    "is_io_deterministic",
    "is_register_safe",
    "iterate",
    "kinds",
    "matches",
    "minimize",
    "of_type",
    "on_every_trail",
    "overlaps",
    "project_labels",
    "reached_states",
    "registers_of",
    "rename_label",
    "reported_matches",
    "restrict_to_window",
    "runs",
    "select_last",
    "select_max",
    "select_next",
    "select_strict",
    "set_apart",
    "show_edge",
    "show_state",
    "stages",
    "staggered",
    "star_difference",
    "star_matches",
    "star_to_formula",
    "streaming",
    "subset_construction",
    "to_dot",
    "to_engine",
    "to_formula",
    "to_mermaid",
    "to_single_register",
    "to_svg",
    "union",
    "unless_found",
    "unroll",
    "unsafe_reads",
    "with_marked_ends",
    "with_star_runs",
    "with_start_loop",
]
