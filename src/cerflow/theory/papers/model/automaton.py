"""The one automaton of all four models: states, registers, and transitions ``condition ↑ output ↓ writes``.

CEA, UCEA, RMA and SRT are notations of it (`cerflow.theory.papers.model.models`) that check what their model allows.
States are values that show how a construction made them: numbers and names, pairs in a product, sets in a subset
construction. An output is the set of labels that the event gets: ``∅`` is the papers' ⊗ or ◦, ``{event}`` their •.
Further labels serve UCEA, SREMO's ``AS`` and the labels of formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, Self, TypeVar

from cerflow.base.graphs import gathered, on_paths, reached
from cerflow.language.automaton import Model, State, rename_registers, show_state, sorted_states
from cerflow.language.automaton_json import automaton_to_json
from cerflow.language.condition import Condition
from cerflow.language.printer import show
from cerflow.language.sremo import MARK
from cerflow.look.pictures.svg import Theme
from cerflow.look.pictures.targets import shown_or_told
from cerflow.theory.papers.model import faults
from cerflow.theory.papers.model.conditions import as_condition, register_selection

#: The outputs ⊗ and •.
SKIPPED: frozenset[str] = frozenset()
MARKED: frozenset[str] = frozenset((MARK,))

A = TypeVar("A", bound="Automaton")
Q = TypeVar("Q", bound=State)
M = TypeVar("M", bound=State)
#: Condition (None is ε), output and writes of a transition.
Effect = tuple[Condition | None, frozenset[str], frozenset[str]]
#: A successor in a construction: the target state, with condition, output and writes.
Successor = tuple[Q, Condition | None, frozenset[str], frozenset[str]]


def check_state(state: State) -> State:
    """The state; raises `StateError` for what is none."""
    parts = [state]
    while parts:
        match parts.pop():
            case int() | str():
                pass
            case tuple() | frozenset() as inner:
                parts += inner
            case other:
                where = "" if other is state else f" in {state!r}"
                raise faults.StateError(
                    f"a state is a number, a name, or a tuple or frozenset of states, not {other!r}{where}; a name "
                    f"such as {str(other)!r} can stand for it"
                )
    return state


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionLike:
    """What the transitions of all models have.

    The event read must satisfy ``condition`` with the registers, is given the labels ``output``, and is kept in the
    registers ``writes``. The condition None is ε. Models with another notation derive these parts from it.
    """

    source: State
    target: State
    condition: Condition | None = None
    output: frozenset[str] = SKIPPED
    writes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_state(self.source)
        check_state(self.target)
        if self.condition is not None:
            object.__setattr__(self, "condition", as_condition(self.condition))
        self._check_names("output", "labels")
        self._check_names("writes", "registers")

    def _check_names(self, part: str, what: str) -> None:
        """Raise `LabelSetError` if a part is not a frozenset of names: letters of a text would pass for names."""
        names = getattr(self, part)
        if not isinstance(names, frozenset) or not all(isinstance(name, str) for name in names):
            raise faults.LabelSetError(f"the {what} of a transition are a frozenset of names, not {names!r}")

    @classmethod
    def of(cls, source: State, target: State, condition: Any, output: Any = SKIPPED, writes: Any = SKIPPED) -> Self:
        """The transition of this model; what the model does not have is left out.

        The registers that the condition reads are the parameters and the selection of an RMA's.
        """
        reads = register_selection(condition) if isinstance(condition, Condition) else ()
        parts = {"source": source, "target": target, "condition": condition, "output": output, "writes": writes}
        parts |= {"marks": bool(output), "labels": output}
        parts |= {"formula": condition, "parameters": reads, "selection": reads}
        return cls(**{f.name: parts[f.name] for f in fields(cls) if f.init})

    @property
    def guard(self) -> Condition:
        """The condition of a transition that is not ε."""
        assert self.condition is not None
        return self.condition

    @property
    def effect(self) -> Effect:
        """Condition, output and writes."""
        return self.condition, self.output, self.writes

    @property
    def reads(self) -> tuple[str, ...]:
        """The register selection: the registers that the condition reads, in its order."""
        return () if self.condition is None else register_selection(self.condition)

    def between(self, source: State, target: State) -> Self:
        """The same transition between other states."""
        return replace(self, source=source, target=target)


@dataclass(frozen=True, kw_only=True)
class Automaton:
    """An automaton; those of the models raise a subclass of `AutomatonError` for parts that do not fit."""

    states: frozenset[State]
    starts: frozenset[State]
    finals: frozenset[State]
    transitions: tuple[TransitionLike, ...] = ()
    registers: tuple[str, ...] = ()

    #: The model, and the class of its transitions.
    model: ClassVar[Model]
    transition: ClassVar[type[TransitionLike]]

    def __post_init__(self) -> None:
        for t in self.transitions:
            if not isinstance(t, self.transition):
                article = "an" if self.model.anywhere else "a"
                raise faults.TransitionKindError(
                    f"the transitions of {article} {self.model} are of class {self.transition.__name__}, "
                    f"not {type(t).__name__}"
                )
        for role, states in (("start", self.starts), ("final", self.finals)):
            for state in sorted_states(states - self.states):
                raise faults.MissingStateError(f"the {role} state {show_state(state)} is not among the states")
        for t in self.transitions:
            for state in (t.source, t.target):
                if state not in self.states:
                    raise faults.MissingStateError(
                        f"a transition has an end {show_state(state)} that is not among the states"
                    )
            if t.condition is None and (t.writes or t.output):
                raise faults.EpsilonTransitionError(
                    "an ε-transition reads no event, so it can neither write nor output one"
                )
            for register in (*t.reads, *sorted(t.writes)):
                if register not in self.registers:
                    raise faults.MissingRegisterError(f"there is no register {register}")

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """The automaton of these parts, named as its fields; an SRT gets one start, by ε-transitions if need be."""
        return cls(**{f.name: parts[f.name] for f in fields(cls) if f.init})

    @classmethod
    def of(cls, transitions: Iterable[Any], *, starts: Iterable[State], finals: Iterable[State]) -> Self:
        """The automaton with these transitions (once each), the states they name, and the registers they use."""
        return cls.made(transitions, starts=starts, finals=finals)

    @classmethod
    def made(
        cls,
        transitions: Iterable[TransitionLike],
        *,
        starts: Iterable[State],
        finals: Iterable[State],
        registers: Iterable[str] | None = None,
        states: Iterable[State] = (),
    ) -> Self:
        """The same with further ``states``, and with these registers."""
        distinct = tuple(dict.fromkeys(transitions))
        first, last = (frozenset(map(check_state, some)) for some in (starts, finals))
        every = first.union(last, states, (t.source for t in distinct), (t.target for t in distinct))
        if registers is None:
            registers = sorted({r for t in distinct for r in (*t.reads, *t.writes)})
        return cls.of_parts(states=every, starts=first, finals=last, transitions=distinct, registers=tuple(registers))

    @classmethod
    def built(
        cls,
        starts: Iterable[Q],
        successors: Callable[[Q], Iterable[Successor[Q]]],
        is_final: Callable[[Q], bool],
        registers: Iterable[str] | None = None,
    ) -> Self:
        """The automaton of all states that are reachable from the start states by ``successors``.

        By default it has the registers that it uses.
        """
        first = list(starts)
        transitions: list[TransitionLike] = []

        def following(state: Q) -> Iterator[Q]:
            for target, condition, output, writes in successors(state):
                transitions.append(cls.transition.of(state, target, condition, output, writes))
                yield target

        found = reached(first, following)
        finals = filter(is_final, found)
        return cls.made(transitions, starts=first, finals=finals, registers=registers, states=found)

    def tracked(
        self,
        begin: M,
        step: Callable[[M, Any], Iterable[tuple[M, Effect]]],
        accepts: Callable[[M], bool] = lambda _: True,
        registers: Iterable[str] | None = None,
    ) -> Self:
        """The product with an observer of the transitions: states are pairs of a state and what the observer remembers.

        ``step`` gives the versions of a transition (none forbids it), each with what is remembered next. In final
        states the observer must accept. By default the automaton has the registers that it uses.
        """

        def successors(place: tuple[State, M]) -> Iterator[Successor[Any]]:
            for t in self.leaving(place[0]):
                for after, effect in step(place[1], t):
                    yield (t.target, after), *effect

        starts: list[Any] = [(state, begin) for state in sorted_states(self.starts)]
        return self.built(starts, successors, lambda p: p[0] in self.finals and accepts(p[1]), registers)

    def as_model(self, model: type[A]) -> A:
        """The automaton of another model with the same runs."""
        if isinstance(self, model):
            return self
        own = (model.transition.of(t.source, t.target, *t.effect) for t in self.transitions)
        return model.made(own, starts=self.starts, finals=self.finals, registers=self.registers, states=self.states)

    def with_transitions(self, transitions: Iterable[TransitionLike], **other: Any) -> Self:
        """The same with other transitions and the states that they name, or with other parts, as `made` takes them."""
        own = {"starts": self.starts, "finals": self.finals, "registers": self.registers, "states": self.states}
        return self.made(transitions, **{**own, **other})

    def rewritten(self, change: Callable[[TransitionLike], Effect], **other: Any) -> Self:
        """The same with other effects of transitions."""
        changed = (self.transition.of(t.source, t.target, *change(t)) for t in self.transitions)
        return self.with_transitions(changed, **other)

    def relocated(self, names: Mapping[State, State]) -> Self:
        """The same with renamed states; states that share a name become one."""
        return self.with_transitions(
            (t.between(names[t.source], names[t.target]) for t in self.transitions),
            starts=map(names.__getitem__, self.starts),
            finals=map(names.__getitem__, self.finals),
            states=names.values(),
        )

    def renumbered(self) -> Self:
        """The same with states 0, 1, …, in breadth-first order from the start states."""
        order = reached(sorted_states(self.starts), lambda q: [t.target for t in self.leaving(q)])
        states = (*order, *sorted_states(self.states - order.keys()))
        return self.relocated({state: k for k, state in enumerate(states)})

    def trimmed(self) -> Self:
        """Without unreachable states, and those that cannot reach a final one; the start of an SRT stays."""
        useful = on_paths(self.starts, self.finals, ((t.source, t.target) for t in self.transitions))
        if self.model is Model.SRT:
            useful |= self.starts
        kept = (t for t in self.transitions if t.source in useful and t.target in useful)
        return self.with_transitions(kept, starts=self.starts & useful, finals=self.finals & useful, states=useful)

    def renamed(self, registers: Mapping[str, str]) -> Self:
        """The same with other names for some registers."""

        def change(t: TransitionLike) -> Effect:
            condition = None if t.condition is None else rename_registers(t.condition, registers)
            return condition, t.output, frozenset(registers.get(r, r) for r in t.writes)

        return self.rewritten(change, registers=dict.fromkeys(registers.get(r, r) for r in self.registers))

    def without_output(self) -> Self:
        """The same with output ⊗ everywhere; of an SRT, the SRA."""
        return self.rewritten(lambda t: (t.condition, SKIPPED, t.writes))

    @cached_property
    def _leaving(self) -> Mapping[State, list[TransitionLike]]:
        return gathered((t.source, t) for t in self.transitions)

    def leaving(self, state: State) -> Iterable[Any]:
        """The transitions out of a state."""
        return self._leaving.get(state, ())

    @cached_property
    def is_epsilon_free(self) -> bool:
        """Whether there is no ε-transition."""
        return all(t.condition is not None for t in self.transitions)

    def refuse_epsilon(self) -> None:
        """Raise `EpsilonFreeError` if there is an ε-transition."""
        if not self.is_epsilon_free:
            raise faults.EpsilonFreeError("ε-transitions cannot stand here; eliminate_epsilon(…) removes them")

    def enclosed(self, states: Iterable[State]) -> frozenset[State]:
        """``Enclose``: the states that are reachable by ε-transitions alone."""
        return frozenset(reached(states, lambda q: [t.target for t in self.leaving(q) if t.condition is None]))

    @cached_property
    def written(self) -> frozenset[str]:
        """The registers that some transition writes."""
        return frozenset().union(*(t.writes for t in self.transitions))

    @cached_property
    def read(self) -> frozenset[str]:
        """The registers that some condition reads."""
        return frozenset(r for t in self.transitions for r in t.reads)

    def __str__(self) -> str:
        whole = f"{self.model}: {len(self.states)} states, {len(self.transitions)} transitions"
        return f"{whole}, {len(self.registers)} registers" if self.model.anywhere else whole

    def to_json(self) -> str:
        """The automaton as JSON, which `from_json` reads; predicates stand in it by their names.

        Raises `UnsupportedQueryError` for conditions that are nested too deeply for JSON.
        """
        from cerflow.theory.papers.translations.conversions import as_formula  # it knows every kind of automaton

        return automaton_to_json(as_formula(self), show)

    def to_svg(self, *, theme: Theme = "auto") -> str:
        """The automaton as SVG; ``theme`` and errors are those of `cerflow.Query.to_svg`."""
        from cerflow.theory.papers.model.models import to_svg  # it knows every kind of automaton

        return to_svg(self, theme=theme)

    def _repr_html_(self) -> str:
        return shown_or_told(self.to_svg)


def fresh_names(taken: Iterable[Hashable], like: str = "r") -> Iterator[str]:
    """Names r1, r2, … that are not taken."""
    used = frozenset(taken)
    return (name for number in count(1) if (name := f"{like}{number}") not in used)
