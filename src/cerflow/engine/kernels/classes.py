"""Classes: the supports that partial matches have, in the order of the strategy.

Two partial matches of a partition have the same class exactly if they have the same support. NEXT compares the
earliest position in which two supports differ, LAST the latest one; who has it is better. So an event changes the
order only by what it is added to. With NEXT ``K + event`` comes directly above ``K``: whatever was better than ``K``
differed from it before. With LAST all that have the event come above all that lack it, in the order that they had.

The classes of a partition are a list from the worst to the best, with numbers in that order (the order-maintenance
problem of Dietz and Sleator, solved by numbering evenly when there is no number left between two neighbours). The
class of the complex event without events is below all others, permanent, and in no list.
"""

from __future__ import annotations

from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.layout import (
    EARLIEST,
    K_BETTER,
    K_HELD,
    K_WORSE,
    N_CLASSES,
    N_FREE_CLASSES,
    NO_EVENTS,
    R_BEST,
    R_WORST,
)

__all__ = ["WORST", "new_class", "rank", "release"]

#: The number of the worst class; all others are between it and its negative.
WORST = -(2**61)
_GAP = 2**32
_EDGE = 2**60
#: With LAST, what an event adds to the rank of whatever it is added to.
_WITH_EVENT = 2**62


@inlined
def rank(cls, marked, strategy, state):
    """The place of ``cls``, or if ``marked`` of it and the event at hand, in the order: the greater, the better."""
    number = state.class_labels[cls]
    if strategy == EARLIEST:
        return 2 * number + (1 if marked else 0)
    return number + (_WITH_EVENT if marked else 0)


@kernel
def new_class(p, cls, strategy, state):
    """The class of ``cls`` with the event at hand; there must be room.

    With LAST the classes of one event have to be made from the worst to the best.
    """
    counters = state.counters
    if counters[N_FREE_CLASSES] > 0:
        counters[N_FREE_CLASSES] -= 1
        new = state.free_classes[counters[N_FREE_CLASSES]]
    else:
        new = counters[N_CLASSES]
        counters[N_CLASSES] += 1
    worse = cls if strategy == EARLIEST else state.partition[p, R_BEST]
    better = state.classes[worse, K_BETTER] if worse != NO_EVENTS else state.partition[p, R_WORST]
    if not _number(new, worse, better, state):
        _number_evenly(p, state)
        _number(new, worse, better, state)
    state.classes[new, K_WORSE] = worse
    state.classes[new, K_BETTER] = better
    state.classes[new, K_HELD] = 0
    if worse != NO_EVENTS:
        state.classes[worse, K_BETTER] = new
    else:
        state.partition[p, R_WORST] = new
    if better != NO_EVENTS:
        state.classes[better, K_WORSE] = new
    else:
        state.partition[p, R_BEST] = new
    return new


@inlined
def _number(new, worse, better, state):
    """Give a class a number between its neighbours; False if there is none."""
    labels = state.class_labels
    number = 0
    if worse != NO_EVENTS and better != NO_EVENTS:
        number = labels[worse] + ((labels[better] - labels[worse]) >> 1)
        if number == labels[worse]:
            return False
    elif worse != NO_EVENTS:
        number = labels[worse] + _GAP
    elif better != NO_EVENTS:
        number = labels[better] - _GAP
    if number > _EDGE or number < -_EDGE:
        return False
    labels[new] = number
    return True


@kernel
def _number_evenly(p, state):
    number = 0
    cls = state.partition[p, R_WORST]
    while cls != NO_EVENTS:
        state.class_labels[cls] = number
        number += _GAP
        cls = state.classes[cls, K_BETTER]


@kernel
def release(p, cls, state):
    """One configuration less has a class; a class without configurations is free."""
    state.classes[cls, K_HELD] -= 1
    if state.classes[cls, K_HELD] > 0:
        return
    worse = state.classes[cls, K_WORSE]
    better = state.classes[cls, K_BETTER]
    if worse != NO_EVENTS:
        state.classes[worse, K_BETTER] = better
    else:
        state.partition[p, R_WORST] = better
    if better != NO_EVENTS:
        state.classes[better, K_WORSE] = worse
    else:
        state.partition[p, R_BEST] = worse
    state.free_classes[state.counters[N_FREE_CLASSES]] = cls
    state.counters[N_FREE_CLASSES] += 1
