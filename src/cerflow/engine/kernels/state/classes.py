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

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part

#: The number of the worst class; all others are between it and its negative.
WORST = -(2**61)
#: The gap between two consecutive numbers at assignment.
GAP = 2**32
_EDGE = 2**60
#: With LAST, the amount by which an event raises the rank of a class that it is added to.
_WITH_EVENT = 2**62


@inlined
def rank(cls, marked, strategy, classes):
    """The rank of ``cls``, or if ``marked`` of ``cls`` with the current event: the greater, the better."""
    if strategy == layout.EARLIEST:
        return 2 * classes[cls, layout.K_NUMBER] + (1 if marked else 0)
    return classes[cls, layout.K_NUMBER] + (_WITH_EVENT if marked else 0)


@inlined
def new_class(p, cls, strategy, classes, partition, counters):
    """The class of ``cls`` with the current event; there must be room.

    With LAST the classes of one event must be made from the worst to the best.
    """
    new = counters[layout.N_FREE_CLASS]
    if new != layout.NO_EVENTS:
        counters[layout.N_FREE_CLASS] = classes[new, layout.K_BETTER]
    else:
        new = counters[layout.N_CLASSES]
        counters[layout.N_CLASSES] += 1
    worse = cls if strategy == layout.EARLIEST else partition[p, layout.R_BEST]
    better = classes[worse, layout.K_BETTER] if worse != layout.NO_EVENTS else partition[p, layout.R_WORST]
    # At most twice: a list has far fewer classes than there are numbers, so renumbering leaves a free number.
    while True:
        number = 0
        if worse != layout.NO_EVENTS and better != layout.NO_EVENTS:
            number = classes[worse, layout.K_NUMBER] + (
                (classes[better, layout.K_NUMBER] - classes[worse, layout.K_NUMBER]) >> 1
            )
        elif worse != layout.NO_EVENTS:
            number = classes[worse, layout.K_NUMBER] + GAP
        elif better != layout.NO_EVENTS:
            number = classes[better, layout.K_NUMBER] - GAP
        if -_EDGE < number < _EDGE and (worse == layout.NO_EVENTS or number > classes[worse, layout.K_NUMBER]):
            break
        # Renumber the whole list, as it has run out of numbers here.
        number = 0
        other = partition[p, layout.R_WORST]
        while other != layout.NO_EVENTS:
            classes[other, layout.K_NUMBER] = number
            number += GAP
            other = classes[other, layout.K_BETTER]
    classes[new, layout.K_NUMBER] = number
    classes[new, layout.K_HELD] = 0
    link(p, worse, new, classes, partition)
    link(p, new, better, classes, partition)
    return new


@inlined
def link(p, worse, better, classes, partition):
    """Make the classes ``worse`` and ``better`` neighbours in a list; one of them may be `NO_EVENTS`, the end."""
    if worse != layout.NO_EVENTS:
        classes[worse, layout.K_BETTER] = better
    else:
        partition[p, layout.R_WORST] = better
    if better != layout.NO_EVENTS:
        classes[better, layout.K_WORSE] = worse
    else:
        partition[p, layout.R_BEST] = worse


@part
def release(p, cls, classes, partition, counters):
    """Release a class from one configuration; a class without configurations is freed."""
    classes[cls, layout.K_HELD] -= 1
    if classes[cls, layout.K_HELD] == 0:
        link(p, classes[cls, layout.K_WORSE], classes[cls, layout.K_BETTER], classes, partition)
        classes[cls, layout.K_BETTER] = counters[layout.N_FREE_CLASS]
        counters[layout.N_FREE_CLASS] = cls
