"""SREMO to transducer by the six schemas (004 Theorem 27), with the operators that the papers add to them.

Strategies, ``unordered``, ``+`` and ``?`` are rewritten first (§5.2). Intersection is the product (Theorem 34), and a
window counts the events since the first mark. A complement is determinised (Corollary 43) and inserted with output ⊗
only (§5.1.2). All parts share the registers of the whole expression; a complement writes its own registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import sremo as r
from cerflow.language.automaton import rename_registers
from cerflow.language.builder.given import SremoGiven, sremo_tree
from cerflow.language.formula import CountWindow
from cerflow.language.node import fold_only, walk
from cerflow.logic.analysis.checks import doubtful_read, refuse_aggregates, refuse_doubtful_reads
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.rewriting.strategies import expand
from cerflow.theory.papers.constructions import normal_forms as forms
from cerflow.theory.papers.constructions.closure import Schemas, SingleEnded, product
from cerflow.theory.papers.constructions.determinize import complement, unchecked_subsets
from cerflow.theory.papers.model.automaton import SKIPPED, Effect, TransitionLike, fresh_names
from cerflow.theory.papers.model.models import SRT


def compile_sremo(expression: SremoGiven, *, most: int | None = None) -> SRT:
    """The transducer with ``Match(T, S) = Match(e, S)`` for all S.

    Raises `QueryError` for aggregates and for a read after ``&`` of a register that both sides write. Raises
    `UnsupportedQueryError` for a complement in which a register may be read any number of events after it was written,
    for a read after ``&`` of a register that one side reads and the other one writes, and if a construction would take
    more than ``most`` steps.
    """
    tree = sremo_tree(expression)
    refuse_aggregates(tree)
    refuse_doubtful_reads(tree)
    expanded = expand(tree)
    doubtful = doubtful_read(expanded, one_sided=True)
    if doubtful is not None:
        raise UnsupportedQueryError(
            f"register '{doubtful.register}' is read by one side of &, written by the other one, and read after them",
            span=doubtful.read.span,
            hint="Let the event before & be stored in a second register for the side that reads it.",
        )
    registers = registers_of(expanded)
    whole: SingleEnded = fold_only(expanded, r.Sremo, _SremoCompiler(registers, most).build)
    return whole.automaton(SRT, registers).renumbered()


def registers_of(expression: SremoGiven) -> tuple[str, ...]:
    """``reg(e)`` (004 App. A.2, equation 12): the registers that an expression reads or writes, sorted."""
    terminals = (n for n in walk(sremo_tree(expression)) if isinstance(n, r.Terminal))
    return tuple(sorted({x for t in terminals for x in (*t.registers, *condition_labels(t.condition))}))


class _SremoCompiler:
    def __init__(self, registers: tuple[str, ...], most: int | None) -> None:
        self._most = most
        self._schemas = Schemas()
        self._registers = registers
        #: Registers for the complements, each used once.
        self._names = fresh_names(self._registers)

    def build(self, _: int, current: r.Sremo, below: list[SingleEnded]) -> SingleEnded:
        """The transducer of an expression, made of those of its operands."""
        schemas = self._schemas
        match current:
            case r.Empty():
                return schemas.between()
            case r.Epsilon():
                return schemas.terminal(None)
            case r.Terminal():
                output = SKIPPED if current.label is None else frozenset((current.label,))
                return schemas.terminal(current.condition, output, current.registers)
            case r.Concatenation():
                return schemas.concatenation(*below)
            case r.Alternation():
                return schemas.between(*below)
            case r.Star():
                return schemas.star(*below)
            case r.Intersection():
                return schemas.embedded(self._intersection(*map(self._alone, below)))
            case r.Windowed(window=CountWindow(events)):
                return schemas.embedded(forms.restrict_to_window(self._alone(below[0]), events))
            case r.Windowed(window=window):
                extent = forms.restrict_to_extent(self._alone(below[0]), window, next(self._names))
                return schemas.embedded(extent)
            case r.Complement():
                return schemas.embedded(self._complement(current, self._alone(below[0])))
        raise TypeError(f"{type(current).__name__} is not an expression")

    def _alone(self, part: SingleEnded) -> SRT:
        return forms.eliminate_epsilon(part.automaton(SRT, self._registers)).trimmed()

    def _intersection(self, left: SRT, right: SRT) -> SRT:
        """The product, in which no side writes what the other one uses."""
        left = self._with_own(left, left.written & (right.written | right.read))
        return product(left, self._with_own(right, right.written & left.read))

    def _with_own(self, transducer: SRT, registers: frozenset[str]) -> SRT:
        """The same with new names for registers, once it has written them; before, it reads what was there."""
        if not registers:
            return transducer
        own = {register: next(self._names) for register in sorted(registers)}

        def step(written: frozenset[str], t: TransitionLike) -> Iterator[tuple[frozenset[str], Effect]]:
            condition = rename_registers(t.guard, {register: own[register] for register in written})
            writes = frozenset(own.get(register, register) for register in t.writes)
            yield written | (t.writes & registers), (condition, t.output, writes)

        return transducer.tracked(frozenset[str](), step)

    def _complement(self, current: r.Complement, operand: SRT) -> SRT:
        """The complement; its writes go to registers of its own, which are read nowhere else.

        All runs of the operand have read the same events. So those that remember an event keep it in one register,
        which is chosen by the event's number modulo the number of events over which one is remembered.
        """
        needed = forms.without_idle_writes(operand.renumbered().without_output()).trimmed()
        kept = forms.events_remembered(needed)
        if kept is None:
            # The expansion of next(…) by `expand` has no place in the text.
            which = "is read in between by e{…}" if current.span is not None else "the operands of next(…) read"
            raise UnsupportedQueryError(
                "this complement needs unbounded memory: a register may be read any number of events after it was "
                "written",
                span=current.span,
                hint=f"Bound what {which}: [TRUE]? . [TRUE]? instead of [TRUE]*.",
            )
        slots = [next(self._names) for _ in range(kept)]
        return complement(unchecked_subsets(forms.in_turn(needed, slots), most=self._most))
