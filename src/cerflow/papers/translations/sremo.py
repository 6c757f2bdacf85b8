"""SREMO to transducer by the six schemas (004 Theorem 27), with the operators that the papers add to them.

Strategies, ``unordered``, ``+`` and ``?`` are rewritten first (§5.2). Intersection is the product (Theorem 34), and a
window counts the events since the first mark. A complement is determinised (Corollary 43) and inserted with output ⊗
only (§5.1.2). All parts share the registers of the whole expression; a complement writes its own registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cerflow.analysis.checks import refuse_aggregates
from cerflow.analysis.scopes import condition_labels
from cerflow.errors import QueryError, UnsupportedQueryError
from cerflow.language.builder.given import SremoGiven, sremo_tree
from cerflow.language.formula import CountWindow
from cerflow.language.node import Node, fold, walk
from cerflow.language.sremo import (
    ANY_EVENT,
    Alternation,
    Complement,
    Concatenation,
    Empty,
    Epsilon,
    Intersection,
    Sremo,
    Star,
    Terminal,
    Windowed,
)
from cerflow.papers.constructions.complement import complement
from cerflow.papers.constructions.determinize import is_determinizable, subset_construction
from cerflow.papers.constructions.epsilon import eliminate_epsilon
from cerflow.papers.constructions.intersection import product
from cerflow.papers.constructions.minimize import without_idle_writes
from cerflow.papers.constructions.schemas import Schemas, SingleEnded
from cerflow.papers.constructions.single_register import to_single_register
from cerflow.papers.constructions.streaming import staggered
from cerflow.papers.constructions.unroll import unroll
from cerflow.papers.constructions.windows import restrict_to_window
from cerflow.papers.model.automaton import SKIPPED, fresh_names
from cerflow.papers.model.srt import SymbolicRegisterTransducer
from cerflow.rewriting.sremo.strategies import expand

__all__ = ["compile_sremo", "registers_of"]


def compile_sremo(expression: SremoGiven, *, most: int | None = None) -> SymbolicRegisterTransducer:
    """The transducer with ``Match(T, S) = Match(e, S)`` for all S.

    Raises `QueryError` for aggregates and for a register that both sides of ``&`` write. Raises `UnsupportedQueryError`
    for windows that do not count events, for a side of ``&`` that reads a register that the other one writes, for the
    complement of strings of unbounded length with registers in use between them, and if a construction would take more
    than ``most`` steps.
    """
    tree = sremo_tree(expression)
    refuse_aggregates(tree)
    whole = _SremoCompiler(expand(tree), most)
    return whole.run()


def registers_of(expression: SremoGiven) -> tuple[str, ...]:
    """``reg(e)`` (004 App. A.2, equation 12): the registers that an expression reads or writes, sorted."""
    found: set[str] = set()
    for current in walk(sremo_tree(expression)):
        if isinstance(current, Terminal):
            found.update(current.registers, condition_labels(current.condition))
    return tuple(sorted(found))


class _SremoCompiler:
    """The fold over one expression."""

    def __init__(self, expression: Sremo, most: int | None) -> None:
        self._expression = expression
        self._most = most
        self._schemas = Schemas()
        self._registers = registers_of(expression)
        #: Registers for the complements, each used once.
        self._names = fresh_names(self._registers)

    def run(self) -> SymbolicRegisterTransducer:
        """The transducer of the whole expression."""
        return self._part(self._expression).transducer(self._registers).renumbered()

    def _part(self, expression: Sremo) -> SingleEnded:
        def visit(current: Node, below: Sequence[SingleEnded | None]) -> SingleEnded | None:
            if not isinstance(current, Sremo):
                return None
            return self._build(current, [part for part in below if part is not None])

        whole = fold(expression, visit)
        assert whole is not None
        return whole

    def _build(self, current: Sremo, below: list[SingleEnded]) -> SingleEnded:
        schemas = self._schemas
        match current:
            case Empty():
                return schemas.nothing()
            case Epsilon():
                return schemas.empty_string()
            case Terminal():
                output = SKIPPED if current.label is None else frozenset((current.label,))
                return schemas.terminal(current.condition, output, current.registers)
            case Concatenation():
                return schemas.concatenation(*below)
            case Alternation():
                return schemas.alternation(*below)
            case Star():
                return schemas.star(*below)
            case Intersection():
                return schemas.embedded(self._intersection(current, *map(self._alone, below)))
            case Windowed(window=CountWindow(events)):
                return schemas.embedded(restrict_to_window(self._alone(below[0]), events))
            case Windowed():
                raise UnsupportedQueryError(
                    "these transducers have only windows of events",
                    span=current.span,
                    hint="Write WITHIN n EVENTS.",
                )
            case Complement():
                return schemas.embedded(self._complement(current, self._alone(below[0])))
        raise TypeError(f"{type(current).__name__} is no expression")

    def _alone(self, part: SingleEnded) -> SymbolicRegisterTransducer:
        return eliminate_epsilon(part.transducer(self._registers)).trimmed()

    def _intersection(
        self, current: Intersection, left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer
    ) -> SymbolicRegisterTransducer:
        both = left.written & right.written
        if both:
            raise QueryError(f"both sides of & write register '{min(both)}'", span=current.span)
        shared = left.written & right.read | right.written & left.read
        if shared:
            raise UnsupportedQueryError(
                f"one side of & reads register '{min(shared)}', which the other one writes", span=current.span
            )
        return product(left, right)

    def _complement(self, current: Complement, operand: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
        """The complement; its writes go to registers of its own, which are read nowhere else."""
        needed = _essential(operand)
        if is_determinizable(needed):
            return complement(subset_construction(self._renamed(needed), most=self._most))
        tree = self._tree(needed)
        if tree is not None:
            return complement(subset_construction(tree[0], most=self._most))
        contained = _contained(current.operand)
        tree = None if contained is None else self._tree(_essential(self._alone(self._part(contained))))
        if tree is not None:
            return _avoiding(staggered(*tree, most=self._most))
        raise UnsupportedQueryError(
            "the complement of strings of any length needs unbounded memory, as registers relate their events",
            span=current.span,
            # The expansion of next(…) by `expand` has no place in the text.
            hint="Bound them: !(… WITHIN n EVENTS)."
            if current.span is not None
            else "Bound the operands of next(…): e WITHIN n EVENTS.",
        )

    def _tree(self, transducer: SymbolicRegisterTransducer) -> tuple[SymbolicRegisterTransducer, int] | None:
        """The walks of a transducer, and the length of the longest; None if the length is unbounded."""
        length = _longest(transducer)
        if length is None:
            return None
        tree = unroll(to_single_register(transducer), length, most=self._most).transducer
        return self._renamed(tree), length

    def _renamed(self, transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
        """With new names for the registers that are written."""
        return transducer.renamed({register: next(self._names) for register in sorted(transducer.written)})


def _essential(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The part of a transducer that matters for its language."""
    return without_idle_writes(transducer.renumbered().without_output()).trimmed()


def _contained(operand: Sremo) -> Sremo | None:
    """The e of ``⊤* · e · ⊤*``, which next(…) must not skip."""
    match operand:
        case Concatenation(Concatenation(Star(before), contained), Star(after)) if before == after == ANY_EVENT:
            return contained
    return None


def _avoiding(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The strings without a prefix that a deterministic automaton accepts."""
    states = transducer.states - transducer.finals
    return replace(
        transducer,
        states=states,
        finals=states,
        transitions=tuple(t for t in transducer.transitions if t.source in states and t.target in states),
    )


def _longest(transducer: SymbolicRegisterTransducer) -> int | None:
    """The number of events on the longest walk of an automaton without useless states; None if unbounded."""
    waiting = dict.fromkeys(transducer.states, 0)
    for t in transducer.transitions:
        waiting[t.target] += 1
    depth = {state: 0 for state, count in waiting.items() if not count}
    for state in (ready := list(depth)):
        for t in transducer.leaving(state):
            depth[t.target] = max(depth.get(t.target, 0), depth[state] + 1)
            waiting[t.target] -= 1
            if not waiting[t.target]:
                ready.append(t.target)
    return max(depth.values()) if len(ready) == len(waiting) else None
