"""The choice of a strategy among the complex events of a detection: all with the best support in the window.

They are found layer by layer, from their last event to their first. A layer has sets of complex events. The promising
parts of each set lead to the sets of the next layer. With LAST these are the parts with the latest mark in any set of
the layer, because the latest difference decides. With NEXT, where all complex events of one start have one support (see
`cerflow.automata.compile.selection`), they are the parts with the earliest start in the window. Then the layers are
written, from the last to the first, as a match graph of the chosen complex events alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerflow.base.array_types import IntRows, SmallRows, Smalls
from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.state.lists import NOTHING

# Columns of the sets: root, first and last part, root in the new graph
S_ROOT, S_FIRST, S_LAST, S_NEW = range(4)
# Columns of the parts: mark, set of the child (-1: none)
P_MARK, P_CHILD = range(2)


class ChoosingRoom(NamedTuple):
    """A match graph, whether NEXT or LAST chooses, working memory, and the new graph."""

    nodes: IntRows
    small: SmallRows
    marks: IntRows
    earliest: bool
    place: Smalls  # zeros at first, one for each node
    seen: Smalls  # the same
    stack: Smalls  # two for each node, and 256 more
    sets: SmallRows  # columns S_…
    parts: SmallRows  # columns P_…
    new: IntRows
    new_small: SmallRows
    found: IntRows


# -- writing the new graph: every complex event once, without a window -------------------------------------------------


@inlined
def event_end(detections, at):
    """The end of the ``detections`` of the event that has number ``at``."""
    end = at
    while end < detections.shape[0] and detections[end, layout.D_POSITION] == detections[at, layout.D_POSITION]:
        end += 1
    return end


@inlined
def write_part(room, n, mark, child, beside):
    """Write node ``n`` of the new graph: a child and then a mark, or the set ``beside``; returns ``n``.

    All else is that of `cerflow.engine.matches.graph.nodes_after_bottom`.
    """
    room.new[n, layout.W_MEASURE] = layout.NOT_BEGUN
    room.new_small[n, layout.I_CHILD] = child
    room.new_small[n, layout.I_LEFT] = beside
    room.new_small[n, layout.I_MARK] = mark
    return n


@inlined
def write_detection(room, written, detections, d, root):
    """Append detection ``d`` with the ``root`` of what is left of it; returns the number of ``written`` ones."""
    room.found[written, layout.D_POSITION] = detections[d, layout.D_POSITION]
    room.found[written, layout.D_BOUND] = layout.NO_BOUND
    room.found[written, layout.D_MARK] = detections[d, layout.D_MARK]
    room.found[written, layout.D_ROOT] = root
    return written + 1


@part
def _best(room, root, bound, earliest, number):
    """The least value among the complex events of a list that are in the window.

    On the stack, a list is the complement of its first node, and a tree its root. Every list gets there once, because
    it is recorded in ``seen`` under this number: several marks may share a child (sets that are parts are disjoint).
    """
    nodes, small, stack, seen = room.nodes, room.small, room.stack, room.seen
    if root == layout.BOTTOM:
        return layout.NOT_BEGUN if earliest else NOTHING
    best = layout.NOT_BEGUN
    stack[0] = ~root
    depth = 1
    while 0 < depth < stack.shape[0] - 4:
        depth -= 1
        t = stack[depth]
        rest = -1
        if t < 0:
            t = ~t
            if nodes[t, layout.W_MEASURE] <= bound or nodes[t, layout.W_LEAST] >= best:
                continue
            if earliest and nodes[t, layout.W_LEAST] > bound:
                best = nodes[t, layout.W_LEAST]
                continue
            rest = small[t, layout.I_REST]
            if rest >= 0:
                if seen[rest] == number:
                    rest = -1
                else:
                    seen[rest] = number
        if rest >= 0 and not earliest:
            stack[depth] = ~rest
            depth += 1
        if nodes[t, layout.W_LATEST] > bound and nodes[t, layout.W_BEST] < best:
            if earliest and nodes[t, layout.W_BEST] > bound:
                best = nodes[t, layout.W_BEST]
            else:
                if nodes[t, layout.W_START] > bound:
                    exact = small[t, layout.I_CHILD] <= layout.BOTTOM
                    exact = exact or (
                        nodes[t, layout.W_VALUE] > bound if earliest else small[t, layout.I_MARK] != layout.NO_MARK
                    )
                    if exact:
                        best = min(best, nodes[t, layout.W_VALUE])
                    elif seen[small[t, layout.I_CHILD]] != number:
                        # Some of its complex events may have left the window.
                        seen[small[t, layout.I_CHILD]] = number
                        stack[depth] = ~small[t, layout.I_CHILD]
                        depth += 1
                # Most of the latest marks are on the left, most of the earliest starts on the right.
                for field in (layout.I_LEFT, layout.I_RIGHT) if earliest else (layout.I_RIGHT, layout.I_LEFT):
                    if small[t, field] >= 0:
                        stack[depth] = small[t, field]
                        depth += 1
        if rest >= 0 and earliest:
            stack[depth] = ~rest
            depth += 1
    return best


@part
def _parts(room, root, bound, goal, number, set_count, begin, count):
    """Append the parts of a list whose value is the goal, as far as known here; their children become sets.

    Sets of the next layer, from number ``begin`` on, are reused. Returns the numbers of parts and of sets, the first -1
    if there is too little room.
    """
    nodes, small, stack, seen, sets = room.nodes, room.small, room.stack, room.seen, room.sets
    earliest, place, parts = room.earliest, room.place, room.parts
    stack[0] = ~root
    depth = 1
    # The loop ends as above. The stack suffices for every graph of the engine; in a forged graph less is found.
    while 0 < depth < stack.shape[0] - 4:
        depth -= 1
        t = stack[depth]
        if t < 0:
            t = ~t
            if nodes[t, layout.W_MEASURE] <= bound or nodes[t, layout.W_LEAST] > goal:
                continue
            rest = small[t, layout.I_REST]
            if rest >= 0 and seen[rest] != number:
                seen[rest] = number
                stack[depth] = ~rest
                depth += 1
        if (
            nodes[t, layout.W_LATEST] <= bound
            or nodes[t, layout.W_BEST] > goal
            or (earliest and nodes[t, layout.W_LATEST] < goal)
        ):
            continue
        for field in (layout.I_RIGHT, layout.I_LEFT):
            if small[t, field] >= 0:
                stack[depth] = small[t, field]
                depth += 1
        start, value, child = nodes[t, layout.W_START], nodes[t, layout.W_VALUE], small[t, layout.I_CHILD]
        if start <= bound or value > goal or (earliest and start < goal):
            continue
        mark = small[t, layout.I_MARK]
        if mark == layout.NO_MARK and child >= 0:
            if seen[child] != number:
                seen[child] = number
                stack[depth] = ~child
                depth += 1
            continue
        if count >= parts.shape[0]:
            return -1, set_count
        parts[count, P_MARK] = mark
        parts[count, P_CHILD] = -1
        if child >= 0:
            to = place[child]
            if to < begin or to >= set_count or sets[to, S_ROOT] != child:
                to = set_count
                if to >= sets.shape[0]:
                    return -1, set_count
                set_count += 1
                sets[to, S_ROOT] = child
                place[child] = to
            parts[count, P_CHILD] = to
        count += 1
    return count, set_count


@inlined
def _is_worse(detections, d, marked, earliest, goal):
    """Whether the matches of a detection lack the detecting event, or with NEXT begin with it, while others do not."""
    if earliest and goal != layout.NOT_BEGUN:
        return detections[d, layout.D_ROOT] == layout.BOTTOM
    return marked and detections[d, layout.D_MARK] == layout.NO_MARK


@kernel
def pick(detections, at, *given):
    """Write the choice from the detections from number ``at`` on; ``given`` is a `ChoosingRoom`."""
    room = ChoosingRoom(*given)
    earliest, place, sets, parts = room.earliest, room.place, room.sets, room.parts
    count, written, number = 1, 0, np.int32(0)
    while at < detections.shape[0]:
        end, bound = event_end(detections, at), detections[at, layout.D_BOUND]
        number += 1
        goal, marked = layout.NOT_BEGUN, False
        for d in range(at, end):
            if earliest:
                goal = min(goal, _best(room, detections[d, layout.D_ROOT], bound, True, number))
            marked = marked or detections[d, layout.D_MARK] != layout.NO_MARK
        set_count, part_count, begin = 0, 0, 0
        if written + end - at > room.found.shape[0]:
            return at, count, written
        for d in range(at, end):
            root = detections[d, layout.D_ROOT]
            if _is_worse(detections, d, marked, earliest, goal):
                continue
            to = place[root]
            if to >= set_count or sets[to, S_ROOT] != root:
                if set_count >= sets.shape[0]:
                    return at, count, written
                sets[set_count, S_ROOT] = root
                place[root] = set_count
                to = set_count
                set_count += 1
            room.found[written + d - at, layout.D_ROOT] = to
        last_layer, first = 0, layout.NOT_BEGUN
        # With LAST the latest marks of the layers decrease, with NEXT the numbers of sets.
        while begin < set_count:
            last_layer = begin
            stop = set_count
            if not earliest:
                goal = layout.NOT_BEGUN
                for s in range(begin, stop):
                    number += 1
                    goal = min(goal, _best(room, sets[s, S_ROOT], bound, False, number))
            for s in range(begin, stop):
                root = sets[s, S_ROOT]
                sets[s, S_FIRST] = part_count
                if root != layout.BOTTOM:
                    number += 1
                    more, set_count = _parts(room, root, bound, goal, number, set_count, stop, part_count)
                    if more < 0:
                        return at, count, written
                    for k in range(part_count, more):
                        if earliest and parts[k, P_CHILD] >= 0 and sets[parts[k, P_CHILD], S_ROOT] == layout.BOTTOM:
                            # Several starts may have one measure; then the first event is the earliest.
                            first = min(first, room.marks[parts[k, P_MARK], layout.M_POSITION])
                    part_count = more
                sets[s, S_LAST] = part_count
            begin = stop
        if count + part_count > room.new.shape[0]:
            return at, count, written
        for s in range(set_count - 1, -1, -1):
            ends = earliest or s >= last_layer
            root = layout.BOTTOM if sets[s, S_ROOT] == layout.BOTTOM and ends else -1
            for k in range(sets[s, S_LAST] - 1, sets[s, S_FIRST] - 1, -1):
                to, position = parts[k, P_CHILD], room.marks[parts[k, P_MARK], layout.M_POSITION]
                child = sets[to, S_NEW] if to >= 0 else -1
                if earliest and child == layout.BOTTOM and position != first:
                    child = -1
                if child < 0 and (to >= 0 or not ends):
                    continue
                root = write_part(room, count, parts[k, P_MARK], child, root)
                count += 1
            sets[s, S_NEW] = root
        begin = written
        for d in range(at, end):
            if _is_worse(detections, d, marked, earliest, goal):
                continue
            # A row is written only after it has been read.
            root = sets[room.found[begin + d - at, layout.D_ROOT], S_NEW]
            if root >= 0:
                written = write_detection(room, written, detections, d, root)
        at = end
    return at, count, written
