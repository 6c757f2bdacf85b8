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

from cerflow.engine.kernels.base.jit import inlined, part
from cerflow.engine.layout import (
    EARLIEST,
    K_BETTER,
    K_HELD,
    K_NUMBER,
    K_WORSE,
    N_CLASSES,
    N_FREE_CLASS,
    NO_EVENTS,
    R_BEST,
    R_WORST,
)

__all__ = ["GAP", "WORST", "new_class", "rank", "release"]

#: The number of the worst class; all others are between it and its negative.
WORST = -(2**61)
#: What is left between two numbers that are given at once.
GAP = 2**32
_EDGE = 2**60
#: With LAST, what an event adds to the rank of whatever it is added to.
_WITH_EVENT = 2**62


@inlined
def rank(cls, marked, strategy, classes):
    """The place of ``cls``, or if ``marked`` of it and the event at hand, in the order: the greater, the better."""
    if strategy == EARLIEST:
        return 2 * classes[cls, K_NUMBER] + (1 if marked else 0)
    return classes[cls, K_NUMBER] + (_WITH_EVENT if marked else 0)


@inlined
def new_class(p, cls, strategy, classes, partition, counters):
    """The class of ``cls`` with the event at hand; there must be room.

    With LAST the classes of one event have to be made from the worst to the best.
    """
    new = counters[N_FREE_CLASS]
    if new != NO_EVENTS:
        counters[N_FREE_CLASS] = classes[new, K_BETTER]
    else:
        new = counters[N_CLASSES]
        counters[N_CLASSES] += 1
    worse = cls if strategy == EARLIEST else partition[p, R_BEST]
    better = classes[worse, K_BETTER] if worse != NO_EVENTS else partition[p, R_WORST]
    # Twice at most: a list has far fewer classes than the numbers have gaps, so there is a number after renumbering.
    while True:
        number = 0
        if worse != NO_EVENTS and better != NO_EVENTS:
            number = classes[worse, K_NUMBER] + ((classes[better, K_NUMBER] - classes[worse, K_NUMBER]) >> 1)
        elif worse != NO_EVENTS:
            number = classes[worse, K_NUMBER] + GAP
        elif better != NO_EVENTS:
            number = classes[better, K_NUMBER] - GAP
        if -_EDGE < number < _EDGE and (worse == NO_EVENTS or number > classes[worse, K_NUMBER]):
            break
        # There is no number left: give all of the list new ones.
        number = 0
        other = partition[p, R_WORST]
        while other != NO_EVENTS:
            classes[other, K_NUMBER] = number
            number += GAP
            other = classes[other, K_BETTER]
    classes[new, K_NUMBER] = number
    classes[new, K_HELD] = 0
    _link(p, worse, new, classes, partition)
    _link(p, new, better, classes, partition)
    return new


@inlined
def _link(p, worse, better, classes, partition):
    """Let two classes be neighbours in a list; there may be none on one side."""
    if worse != NO_EVENTS:
        classes[worse, K_BETTER] = better
    else:
        partition[p, R_WORST] = better
    if better != NO_EVENTS:
        classes[better, K_WORSE] = worse
    else:
        partition[p, R_BEST] = worse


@part
def release(p, cls, classes, partition, counters):
    """One configuration less has a class; a class without configurations is free."""
    classes[cls, K_HELD] -= 1
    if classes[cls, K_HELD] == 0:
        _link(p, classes[cls, K_WORSE], classes[cls, K_BETTER], classes, partition)
        classes[cls, K_BETTER] = counters[N_FREE_CLASS]
        counters[N_FREE_CLASS] = cls
