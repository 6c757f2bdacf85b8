"""Automata as values: the models of the papers and their constructions.

A `SymbolicRegisterTransducer` reads a string of events and marks some of them. A `RegisterMatchAutomaton` is
its older form. There are two automata without memory: a `ComplexEventAutomaton` marks events, and a
`UnaryComplexEventAutomaton` gives them sets of labels. All are frozen values that are checked when made,
and every construction returns a new one.

>>> from cerflow.automata import Stream, compile_sremo, determinize_windowed, eliminate_epsilon, matches, unroll
>>> seller = compile_sremo("[type = 'B'] MARK INTO r . [TRUE]* . [type = 'S' AND id = r.id] MARK")
>>> print(seller)
SRT: 8 states, 9 transitions, 1 registers
>>> print(eliminate_epsilon(seller))
SRT: 4 states, 5 transitions, 1 registers
>>> events = Stream.from_dicts([{"type": "B", "id": 1}, {"type": "B", "id": 2}, {"type": "S", "id": 1}])
>>> [sorted(position for _, position in match) for match in matches(seller, events)]
[[0, 2]]
>>> print(unroll(eliminate_epsilon(seller), 3).transducer)
SRT: 5 states, 4 transitions, 1 registers

The modules of this room are internal. They turn formulas into transducers of the engine, one construction per
file. `to_engine` and `from_engine` convert between the papers' model and the engine's.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cerflow.theory.papers.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # The engine uses the modules of this room, and does without the constructions of the papers.
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        from cerflow.theory.papers import public

        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'cerflow.automata' has no attribute '{name}'")


def __dir__() -> list[str]:
    from cerflow.theory.papers import public

    return sorted(name for name in vars(public) if not name.startswith("_"))
