"""Union, concatenation and star of transducers (004 Definition 30, Theorem 31; 003 Theorem 12).

Registers of the second that the first has too are renamed, so that neither sees the other's writes. Star keeps the
contents of registers from one repetition to the next, as SREMO does (Definition 17). Definition 30 wants them empty,
which is the same only if no repetition reads a register before writing it (erratum 11.5).
"""

from __future__ import annotations

from typing import Any, overload

from cerflow.papers.constructions.cea_closure import united
from cerflow.papers.constructions.schemas import Schemas, SingleEnded
from cerflow.papers.model.cea import (
    ComplexEventAutomaton,
    MemorylessAutomaton,
    UnaryComplexEventAutomaton,
)
from cerflow.papers.model.models import CEA, SRT, UCEA, defined_for
from cerflow.papers.model.srt import SymbolicRegisterTransducer, fresh_names

__all__ = ["concatenate", "iterate", "set_apart", "union"]


@overload
def union(left: ComplexEventAutomaton, right: ComplexEventAutomaton) -> ComplexEventAutomaton: ...
@overload
def union(left: UnaryComplexEventAutomaton, right: UnaryComplexEventAutomaton) -> UnaryComplexEventAutomaton: ...
@overload
def union(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer: ...
@defined_for(CEA, UCEA, SRT)
def union(left: Any, right: Any) -> Any:
    """``Match(T, S) = Match(T1, S) ∪ Match(T2, S)``, also of two automata without memory (P1 Proposition 1)."""
    if isinstance(left, MemorylessAutomaton):
        return united(left, right)
    right = set_apart(left, right)
    schemas = Schemas()
    whole = schemas.alternation(schemas.embedded(left), schemas.embedded(right))
    return _transducer(whole, left, right)


@defined_for(SRT)
def concatenate(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """``Match(T, S)`` is all ``M1 · M2`` with ``M1 ∈ Match(T1, S1)``, ``M2 ∈ Match(T2, S2)``, ``S = S1 · S2``."""
    right = set_apart(left, right)
    schemas = Schemas()
    whole = schemas.concatenation(schemas.embedded(left), schemas.embedded(right))
    return _transducer(whole, left, right)


@defined_for(SRT)
def iterate(body: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """Any number of repetitions, one after the other; registers are not reset between them."""
    schemas = Schemas()
    return _transducer(schemas.star(schemas.embedded(body)), body)


@defined_for(SRT)
def set_apart(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The second transducer, with new names for the registers that the first one has, too."""
    names = fresh_names((*left.registers, *right.registers))
    return right.renamed({r: next(names) for r in right.registers if r in left.registers})


def _transducer(whole: SingleEnded, *parts: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    return whole.transducer(register for part in parts for register in part.registers).renumbered()
