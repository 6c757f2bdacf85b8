"""Writes the complex events that MAX leaves of those an event detects as a match graph.

The states of `cerflow.engine.kernels.matches.largest_states` are written from the first marks to the last.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.matches import largest_states as ls
from cerflow.engine.kernels.matches.largest_states import Room
from cerflow.engine.kernels.matches.written import event_end, write_detection, write_part
from cerflow.engine.layout import BOTTOM, D_BOUND, D_MARK, D_ROOT


@part
def _written(room, s, root):
    """The root of a member of a state in the new graph, -1 if nothing is left of the member."""
    if s < 0:
        return np.int32(-1)
    low, high = room.states[s, ls.X_MEMBERS], room.states[s, ls.X_RIVALS]
    while low < high:
        middle = (low + high) // 2
        if room.members[middle, ls.E_ROOT] < root:
            low = middle + 1
        else:
            high = middle
    there = low < room.states[s, ls.X_RIVALS] and room.members[low, ls.E_ROOT] == root
    return room.members[low, ls.E_NEW] if there else np.int32(-1)


@inlined
def _add(room, count, mark, child, member):
    """Add a part to a member in the new graph, if anything is left of its child.

    Returns the number of nodes, or -1 if there is too little room.
    """
    if child < 0:
        return count
    if count >= room.new.shape[0]:
        return -1
    room.members[member, ls.E_NEW] = write_part(room, count, mark, child, room.members[member, ls.E_NEW])
    return count + 1


@part
def _write(room, s, count):
    """Write the members of a state, after those of the states that its steps lead to; returns what `_add` does."""
    members, states, steps, parts = room.members, room.states, room.steps, room.parts
    alone = states[s, ls.X_STEPS] == states[s, ls.X_STEPS_END] and states[s, ls.X_RIVALS] == states[s, ls.X_END]
    for m in range(states[s, ls.X_MEMBERS], states[s, ls.X_RIVALS]):
        ended = alone and room.lists[room.place[members[m, ls.E_ROOT]], ls.L_END] == 1
        members[m, ls.E_NEW] = BOTTOM if ended else -1
    for k in range(states[s, ls.X_STEPS_END] - 1, states[s, ls.X_STEPS] - 1, -1):
        child = _written(room, steps[k, ls.P_TO], steps[k, ls.P_CHILD])
        count = _add(room, count, steps[k, ls.P_MARK], child, steps[k, ls.P_MEMBER])
        if count < 0:
            return -1
    # Children have smaller numbers, so they are written before.
    for m in range(states[s, ls.X_MEMBERS], states[s, ls.X_RIVALS]):
        which = room.place[members[m, ls.E_ROOT]]
        for k in range(room.lists[which, ls.L_FIRST], room.lists[which, ls.L_LAST]):
            if not room.counts[parts[k, ls.P_MARK]]:
                child = _written(room, s, parts[k, ls.P_CHILD])
                count = _add(room, count, parts[k, ls.P_MARK], child, m)
                if count < 0:
                    return -1
    return count


@kernel
def largest(detections, at, *given):
    """Write what is left of the detections from number ``at`` on; ``given`` is a `Room`."""
    room = Room(*given)
    numbers, order = room.numbers, room.order
    done, written = 1, 0
    while at < detections.shape[0]:
        end = event_end(detections, at)
        bound = detections[at, D_BOUND]
        for k in (ls.N_LISTS, ls.N_PARTS, ls.N_STATES, ls.N_MEMBERS):
            numbers[k] = 0
        with_mark = ls.begin_states(room, detections, at, end, True, bound)
        without = ls.NO_ROOM if with_mark == ls.NO_ROOM else ls.begin_states(room, detections, at, end, False, bound)
        if without == ls.NO_ROOM or written + end - at > room.found.shape[0]:
            return at, done, written
        steps = 0
        s = 0
        while s < numbers[ls.N_STATES]:
            steps = ls.steps_from(room, s, steps, bound)
            if steps < 0:
                return at, done, written
            # Steps lead to states whose latest mark is earlier.
            first = room.states[s, ls.X_STEPS]
            order[s, 0] = s
            order[s, 1] = room.steps[first, ls.P_MARK] if steps > first else -1
            s += 1
        ls.sort_rows(order, 0, s, 1, True)
        count = done
        for k in range(s - 1, -1, -1):
            count = _write(room, order[k, 0], count)
            if count < 0:
                return at, done, written
        done = count
        for d in range(at, end):
            state = with_mark if room.counts[detections[d, D_MARK]] else without
            root = _written(room, state, detections[d, D_ROOT])
            if root >= 0:
                written = write_detection(room, written, detections, d, root)
        at = end
    return at, done, written
