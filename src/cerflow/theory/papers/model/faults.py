"""The errors of automata and of constructions on them: one exception per fault, each an `AutomatonError`."""

from __future__ import annotations

from cerflow.base.errors import CerflowError

__all__ = ["AutomatonError", "ConditionError", "EpsilonFreeError", "EpsilonTransitionError", "LabelSetError"]
__all__ += ["MissingRegisterError", "MissingStateError", "NotDeterministicError", "NotDeterminizableError"]
__all__ += ["NotMemorylessError", "RegisterSelectionError", "SharedRegistersError", "StateError", "TransitionKindError"]


class AutomatonError(CerflowError, ValueError):
    """An automaton, or a construction on it, is at fault."""


class StateError(AutomatonError):
    """A state must be a number, a name, or a tuple or frozenset of states."""


class MissingStateError(AutomatonError):
    """A start state, a final state or an end of a transition is not among the states."""


class MissingRegisterError(AutomatonError):
    """A transition reads or writes a register that the automaton does not have."""


class EpsilonTransitionError(AutomatonError):
    """An ε-transition consumes no event, so it can have no condition, write or output."""


class RegisterSelectionError(AutomatonError):
    """A register selection must name exactly one register, or the head, for each parameter of its formula."""


class ConditionError(AutomatonError):
    """The condition of a transition must be text or a tree, about the event read and events in registers."""


class LabelSetError(AutomatonError):
    """The labels and the registers written of a transition must be frozensets of names, the mark of a CEA a bool."""


class TransitionKindError(AutomatonError):
    """The transitions of an automaton must be of its model, and a construction must be defined for the model."""


class NotMemorylessError(AutomatonError):
    """Conditions read registers, so there is no complex event automaton, which has none."""


class EpsilonFreeError(AutomatonError):
    """The construction is defined for automata without ε-transitions; `eliminate_epsilon` removes them."""


class SharedRegistersError(AutomatonError):
    """One of two automata writes a register that the other one reads or writes; `renamed` separates them."""


class NotDeterministicError(AutomatonError):
    """The construction is defined for deterministic automata."""


class NotDeterminizableError(AutomatonError):
    """Runs would overwrite the registers of one another: unroll the automaton for a window first (004 Theorem 38)."""
