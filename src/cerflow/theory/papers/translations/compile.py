"""From the languages of the papers to automata: SREMO to transducer, bounded CEPL to register match automaton.

SREMO by the six schemas (004 Theorem 27), with the operators that the papers add to them. Strategies, ``unordered``,
``+`` and ``?`` are rewritten first (§5.2). Intersection is the product (Theorem 34), and a window counts the events
since the first mark. A complement is determinised (Corollary 43) and inserted with output ⊗ only (§5.1.2). All parts
share the registers of the whole expression; a complement writes its own registers.

CEPL by the algorithms of 003 (Theorem 9, Algorithms 1, 3 and 4). Two maps are built besides the automaton: δx gives the
labels of the event that a transition reads (none for ε and for loops that skip), and rx the register for the event of
each label. Three things differ from the printed algorithms, because these are wrong there. A filter is checked where
all *other* labels appear on every trail (erratum 11.8). Registers made for one transition are known to the next (the
same). A register that already exists is also written by the transitions of its label that do not write it yet.
Otherwise in ``((A AS x ; B AS y) FILTER x.v = y.v OR D AS x) ; C AS z FILTER x.v = z.v`` the second filter finds a
register for x that a D does not write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.automaton import HEAD, rename_registers
from cerflow.language.builder.given import SremoGiven, of_formula, sremo_tree
from cerflow.language.condition import Condition
from cerflow.language.node import fold_only, walk
from cerflow.language.predicates.registry import is_about_set
from cerflow.logic.analysis.checks import doubtful_read, refuse_aggregates, refuse_doubtful_reads
from cerflow.logic.analysis.scopes import condition_labels, labels_of, resolve
from cerflow.logic.conditions.connectives import TRUE, conjunction, conjuncts
from cerflow.logic.conditions.guards import event_test, without_brackets
from cerflow.logic.rewriting.strategies import expand
from cerflow.theory.papers.constructions import normal_forms as forms
from cerflow.theory.papers.constructions.closure import Schemas, SingleEnded, product, with_start_loop
from cerflow.theory.papers.constructions.determinize import complement, unchecked_subsets
from cerflow.theory.papers.constructions.operators import anchor
from cerflow.theory.papers.model.automaton import SKIPPED, Effect, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.models import RMA, SRT, MatchTransition

__all__ = ["compile_cepl", "compile_sremo", "registers_of"]


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
        self._schemas = Schemas(SRT.transition)
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
            case r.Windowed(window=f.CountWindow(events)):
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


@dataclass(frozen=True, slots=True)
class _Draft:
    """An automaton under construction, and the inverse of rx."""

    whole: SingleEnded
    register_of: dict[str, str]

    def with_transitions(self, transitions: Iterable[TransitionLike]) -> _Draft:
        """The same with other transitions."""
        return replace(self, whole=replace(self.whole, transitions=tuple(transitions)))


@of_formula
def compile_cepl(formula: f.Formula, *, most: int | None = None) -> RMA:
    """The automaton with ``M ∈ ⟦A⟧_n`` iff M is a match of the formula that ends at n.

    The operators are those of core-CEPL: an event type, AS, FILTER, OR, ``;`` and ``+``. Labels go into the output, so
    ``T AS x`` outputs T and x. Raises `QueryError` for a label that no part gives, and `UnsupportedQueryError` for
    other operators, for conditions on sets of events, and for a formula that is not bounded: a filter has a label that
    its operand does not give to exactly one event.

    ``(…) WITHIN n EVENTS`` gives the windowed automaton (Theorem 14, Algorithm 5): without ε, unrolled from the first
    event with a label to the n-th, so that only its start state has a loop. Then `UnsupportedQueryError` is also raised
    for more than ``most`` states.
    """
    tree, sizes = formula, []
    while isinstance(tree, f.Within):
        if not isinstance(tree.window, f.CountWindow):
            raise UnsupportedQueryError(
                "these automata have only windows of events", span=tree.span, hint="Write WITHIN n EVENTS."
            )
        sizes.append(tree.window.events)
        tree = tree.operand
    resolve(tree)
    whole = fold_only(tree, f.Formula, _CeplCompiler().build).whole.automaton(RMA, ())
    if not sizes:
        return whole
    walks = forms.unroll(anchor(forms.eliminate_epsilon(whole)), min(sizes), most=most)
    return with_start_loop(walks.transducer)


class _CeplCompiler:
    """The fold over one formula. The output of a transition is its δx."""

    def __init__(self) -> None:
        self._schemas = Schemas(RMA.transition)
        self._registers = fresh_names(())

    def build(self, _: int, current: f.Formula, below: list[_Draft]) -> _Draft:
        """The automaton of a formula, made of those of its operands."""
        schemas = self._schemas
        match current:
            case f.EventType():
                # Skip any events, then read one of the type.
                read = schemas.terminal(event_test(current), frozenset((current.name,)))
                skip = schemas.edge(read.start, read.start, TRUE)
                return _Draft(replace(read, transitions=(skip, *read.transitions)), {})
            case f.As(operand, label) if isinstance(operand, f.EventType | f.As):
                (part,) = below
                labelled = (replace(t, output=t.output | {label}) if t.output else t for t in part.whole.transitions)
                return part.with_transitions(labelled)
            case f.Disjunction() | f.Sequence():
                left, right = below
                join = schemas.between if isinstance(current, f.Disjunction) else schemas.concatenation
                return _Draft(join(left.whole, right.whole), {**right.register_of, **left.register_of})
            case f.Iteration():
                body = below[0].whole
                return below[0].with_transitions((*body.transitions, schemas.edge(body.final, body.start, None)))
            case f.Filter():
                _check_bounded(current)
                return self._filter(below[0], without_brackets(current.condition))
        if isinstance(current, f.Within):
            raise UnsupportedQueryError("WITHIN is allowed only around the whole formula here", span=current.span)
        raise UnsupportedQueryError(
            f"{type(current).__name__} does not belong to core-CEPL, which has types, AS, FILTER, OR, ';' and '+'",
            span=current.span,
        )

    def _filter(self, part: _Draft, condition: Condition) -> _Draft:
        """Algorithm 3; a condition without labels is checked at every event that gets a label."""
        labels = register_selection(condition)
        appeared = forms.on_every_trail((part.whole.start,), part.whole.transitions, lambda t: t.output)
        kept: dict[str, str] = {}
        found = []
        for t in part.whole.transitions:
            assert isinstance(t, MatchTransition)
            given = t.output.intersection(labels)
            asked = bool(given or (t.output and not labels))
            if t.formula is not None and asked and set(labels) - given <= appeared.get(t.source, frozenset()):
                # Algorithm 4 (``CreateNewRs``): the arguments, in order, with registers where needed.
                arguments = dict(zip(t.parameters, t.selection))
                for label in (x for x in labels if x not in arguments):
                    if label not in given:
                        kept[label] = part.register_of.get(label) or kept.get(label) or next(self._registers)
                    arguments[label] = HEAD if label in given else kept[label]
                formula = conjunction([*conjuncts(t.formula), *conjuncts(condition)])
                t = replace(t, formula=formula, parameters=tuple(arguments), selection=tuple(arguments.values()))
            found.append(t)
        writing = (replace(t, writes=t.writes.union(kept[x] for x in t.output.intersection(kept))) for t in found)
        return replace(part.with_transitions(writing), register_of={**part.register_of, **kept})


def _check_bounded(current: f.Filter) -> None:
    if any(map(is_about_set, walk(current.condition))):
        raise UnsupportedQueryError("registers hold one event, so nothing is aggregated", span=current.span)
    bound = labels_of(current.operand).bound
    for label in register_selection(current.condition):
        if label not in bound:
            raise UnsupportedQueryError(
                f"the formula is not bounded: its filtered part does not give label '{label}' to exactly one event",
                span=current.span,
            )
