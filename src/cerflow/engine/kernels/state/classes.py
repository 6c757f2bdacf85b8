"""Classes: the supports of partial matches, in the order of the strategy.

Two partial matches of a partition have the same class exactly if they have the same support. NEXT compares the earliest
position in which two supports differ, LAST the latest one; the support with that position is better. So an event
changes the order only for the classes that it is added to. With NEXT ``K + event`` comes directly above ``K``: all
classes better than ``K`` differed from it before. With LAST all classes with the event come above all without it, in
their old order.

The classes of a partition are a list from the worst to the best, with numbers in that order (the order-maintenance
problem of Dietz and Sleator, solved by even renumbering when no number is left between two neighbours). The class of
the complex event without events is below all others, permanent, and in no list.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import inlined, part
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
#: The gap between two consecutive numbers at assignment.
GAP = 2**32
_EDGE = 2**60
#: With LAST, the amount by which an event raises the rank of a class that it is added to.
_WITH_EVENT = 2**62


@inlined
def rank(cls, marked, strategy, classes):
    """The place of ``cls``, or if ``marked`` of it with the current event, in the order: the greater, the better."""
    if strategy == EARLIEST:
        return 2 * classes[cls, K_NUMBER] + (1 if marked else 0)
    return classes[cls, K_NUMBER] + (_WITH_EVENT if marked else 0)


@inlined
def new_class(p, cls, strategy, classes, partition, counters):
    """The class of ``cls`` with the current event; there must be room.

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
    # At most twice: a list has far fewer classes than there are numbers, so renumbering leaves a free number.
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
        # No number is left: renumber the whole list.
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
    """Make two classes neighbours in a list; one side may be empty."""
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
    """Release a class from one configuration; a class without configurations is freed."""
    classes[cls, K_HELD] -= 1
    if classes[cls, K_HELD] == 0:
        _link(p, classes[cls, K_WORSE], classes[cls, K_BETTER], classes, partition)
        classes[cls, K_BETTER] = counters[N_FREE_CLASS]
        counters[N_FREE_CLASS] = cls
