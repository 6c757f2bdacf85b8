"""Finds the complex events that MAX leaves of those an event detects: those not part of another one in the window.

They are found from their last event to their first. A state has sets of the match graph that were reached with the same
marks, its members, and sets that were reached with more marks, its rivals: a complex event of a member is left out if a
rival has all of its marks. A step chooses the next mark. Members that have it continue; members and rivals that have it
after further marks continue as rivals. The same members with the same rivals are one state, so the work that many
complex events share is done once.

With BY only marks with one of these labels count; the sets that a member reaches over other marks are members, too.
What is left is written state by state, from the first marks to the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerflow.base.array_types import IntRows, Mask, SmallRows, Smalls
from cerflow.engine import layout
from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.matches.pick import event_end, write_detection, write_part
from cerflow.engine.kernels.state.collections import sort_rows

# Columns of the sets that were listed: root, first and last part, whether the complex event without events is in it
L_ROOT, L_FIRST, L_LAST, L_END = range(4)
# Columns of parts and steps: mark, child; of a step also its member and the state that it leads to
P_MARK, P_CHILD, P_MEMBER, P_TO = range(4)
# Columns of members and rivals: root, root in the new graph
E_ROOT, E_NEW = range(2)
# Columns of the states: its first member, first rival, last rival, place in the table of states, first and last step
X_MEMBERS, X_RIVALS, X_END, X_SLOT, X_STEPS, X_STEPS_END = range(6)
# The roles in which nodes are ``seen``: nodes of a heap, members and rivals of the next state, rivals passed before
WALKED, MEMBER, RIVAL, PASSED = range(4)
# Numbers: listed sets, parts, states, members and rivals; the numbers under which nodes are seen; whether there was too
# little room, after which all that is found is of no use
N_LISTS, N_PARTS, N_STATES, N_MEMBERS, N_WALK, N_STEP, N_PASSED, N_FULL = range(8)
NUMBERS = 8

#: Instead of a state: nothing is left.
NOTHING = -1


class Room(NamedTuple):
    """A match graph, the marks that count, the working memory of `largest`, and the new graph.

    ``parts`` has room for one list, and ``members`` for one state, of all nodes beyond what else it has room for.
    """

    nodes: IntRows
    small: SmallRows
    marks: IntRows
    counts: Mask
    place: Smalls
    seen: SmallRows
    stack: Smalls
    pending: SmallRows
    lists: SmallRows
    parts: SmallRows
    members: SmallRows
    states: SmallRows
    table: Smalls
    steps: SmallRows
    order: SmallRows
    numbers: Smalls
    new: IntRows
    new_small: SmallRows
    found: IntRows


@inlined
def _sees(room, node, role, number):
    """Whether a node is seen for the first time in a role under this number."""
    if room.seen[node, role] == number:
        return False
    room.seen[node, role] = number
    return True


@part
def _listed(room, root, bound):
    """The number of a set in the lists, its latest parts first."""
    nodes, small, numbers, parts, lists = room.nodes, room.small, room.numbers, room.parts, room.lists
    found = room.place[root]
    if found < numbers[N_LISTS] and lists[found, L_ROOT] == root:
        return found
    found = numbers[N_LISTS]
    count = numbers[N_PARTS]
    if found >= lists.shape[0] or count + nodes.shape[0] > parts.shape[0]:
        numbers[N_FULL] = 1
        return np.int32(0)
    numbers[N_WALK] += 1
    end = 0
    room.stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        n = room.stack[depth]
        if small[n, layout.I_CHILD] < 0:
            end = 1
        else:
            parts[count, P_MARK] = small[n, layout.I_MARK]
            parts[count, P_CHILD] = small[n, layout.I_CHILD]
            count += 1
        for field in (layout.I_LEFT, layout.I_RIGHT):
            beside = small[n, field]
            # A node is met twice only in a forged graph.
            if beside >= 0 and nodes[beside, layout.W_MEASURE] > bound and _sees(room, beside, WALKED, numbers[N_WALK]):
                room.stack[depth] = beside
                depth += 1
    sort_rows(parts, numbers[N_PARTS], count, P_MARK, True)
    lists[found, L_ROOT] = root
    lists[found, L_FIRST] = numbers[N_PARTS]
    lists[found, L_LAST] = count
    lists[found, L_END] = end
    numbers[N_LISTS] = found + 1
    numbers[N_PARTS] = count
    room.place[root] = found
    return found


@part
def _closed(room, begin, last, end, bound):
    """Add the members after marks that do not count; returns the last member."""
    members = room.members
    at = begin
    while at < last:
        which = _listed(room, members[at, E_ROOT], bound)
        for k in range(room.lists[which, L_FIRST], room.lists[which, L_LAST]):
            child = room.parts[k, P_CHILD]
            if not room.counts[room.parts[k, P_MARK]] and _sees(room, child, MEMBER, room.numbers[N_STEP]):
                # Rivals follow the members.
                members[end, E_ROOT] = members[last, E_ROOT]
                members[last, E_ROOT] = child
                last += 1
                end += 1
        at += 1
    return last


@part
def _state(room, begin, last, end, bound):
    """The number of the state of the last members and rivals, which follow those of all other states."""
    members, states, table, numbers = room.members, room.states, room.table, room.numbers
    closed = _closed(room, begin, last, end, bound)
    end += closed - last
    # A set that is both a member and a rival counts as a rival, which has more marks.
    rivals = begin
    for at in range(begin, closed):
        if room.seen[members[at, E_ROOT], RIVAL] != numbers[N_STEP]:
            members[rivals, E_ROOT] = members[at, E_ROOT]
            rivals += 1
    if rivals == begin:
        return NOTHING
    for at in range(closed, end):
        members[rivals + at - closed, E_ROOT] = members[at, E_ROOT]
    end += rivals - closed
    sort_rows(members, begin, rivals, E_ROOT, False)
    sort_rows(members, rivals, end, E_ROOT, False)
    mixed = np.int64(rivals - begin)
    for at in range(begin, end):
        mixed = wrapped_product(mixed ^ members[at, E_ROOT], 0x9E3779B1) & 0x7FFFFFFFFFFF
        mixed ^= mixed >> 17
    slot = mixed % table.shape[0]
    while table[slot] < numbers[N_STATES] and states[table[slot], X_SLOT] == slot:
        s = table[slot]
        first = states[s, X_MEMBERS]
        same = states[s, X_END] - first == end - begin and states[s, X_RIVALS] - first == rivals - begin
        k = 0
        while same and k < end - begin:
            same = members[first + k, E_ROOT] == members[begin + k, E_ROOT]
            k += 1
        if same:
            return np.int64(s)
        slot = (slot + 1) % table.shape[0]
    s = np.int64(numbers[N_STATES])
    # The next state may have all nodes, as members and as rivals.
    if s >= states.shape[0] or end + 2 * room.nodes.shape[0] > members.shape[0]:
        numbers[N_FULL] = 1
        return NOTHING
    table[slot] = s
    states[s, X_MEMBERS] = begin
    states[s, X_RIVALS] = rivals
    states[s, X_END] = end
    states[s, X_SLOT] = slot
    numbers[N_STATES] = s + 1
    numbers[N_MEMBERS] = end
    return s


@inlined
def _pass(room, root, passed):
    """Make a set pending unless it is; returns the number of pending sets."""
    if not _sees(room, root, PASSED, room.numbers[N_PASSED]):
        return passed
    room.pending[passed, 0] = root
    room.pending[passed, 1] = -1
    return passed + 1


@part
def _rivals(room, position, passed, end, bound):
    """Move the pending sets to a mark at this position; those that have one become rivals after ``end``.

    Returns the last of them and the number of pending sets.
    """
    pending, lists, parts = room.pending, room.lists, room.parts
    i = 0
    while i < passed:
        which = _listed(room, pending[i, 0], bound)
        k = pending[i, 1] if pending[i, 1] >= 0 else lists[which, L_FIRST]
        while k < lists[which, L_LAST] and room.marks[parts[k, P_MARK], layout.M_POSITION] > position:
            passed = _pass(room, parts[k, P_CHILD], passed)
            k += 1
        pending[i, 1] = k
        while k < lists[which, L_LAST] and room.marks[parts[k, P_MARK], layout.M_POSITION] == position:
            child = parts[k, P_CHILD]
            if room.counts[parts[k, P_MARK]] and _sees(room, child, RIVAL, room.numbers[N_STEP]):
                room.members[end, E_ROOT] = child
                end += 1
            k += 1
        i += 1
    return end, passed


@part
def _steps_from(room, s, count, bound):
    """Append the steps from a state to the first ``count``, and the states that they lead to; returns their number."""
    members, states, steps, numbers = room.members, room.states, room.steps, room.numbers
    states[s, X_STEPS] = count
    group = count
    for at in range(states[s, X_MEMBERS], states[s, X_RIVALS]):
        which = _listed(room, members[at, E_ROOT], bound)
        if count + room.lists[which, L_LAST] - room.lists[which, L_FIRST] > steps.shape[0]:
            numbers[N_FULL] = 1
            break
        for k in range(room.lists[which, L_FIRST], room.lists[which, L_LAST]):
            if room.counts[room.parts[k, P_MARK]]:
                steps[count, P_MARK] = room.parts[k, P_MARK]
                steps[count, P_CHILD] = room.parts[k, P_CHILD]
                steps[count, P_MEMBER] = at
                count += 1
    states[s, X_STEPS_END] = count
    sort_rows(steps, group, count, P_MARK, True)
    numbers[N_PASSED] += 1
    passed = 0
    for at in range(states[s, X_RIVALS], states[s, X_END]):
        passed = _pass(room, members[at, E_ROOT], passed)
    while group < count:
        position = room.marks[steps[group, P_MARK], layout.M_POSITION]
        numbers[N_STEP] += 1
        begin = numbers[N_MEMBERS]
        last = begin
        after = group
        while after < count and room.marks[steps[after, P_MARK], layout.M_POSITION] == position:
            if _sees(room, steps[after, P_CHILD], MEMBER, numbers[N_STEP]):
                members[last, E_ROOT] = steps[after, P_CHILD]
                last += 1
            after += 1
        end, passed = _rivals(room, position, passed, last, bound)
        to = _state(room, begin, last, end, bound)
        for k in range(group, after):
            steps[k, P_TO] = to
            # Its extra mark makes it a rival of the others at earlier marks.
            passed = _pass(room, steps[k, P_CHILD], passed)
        group = after
    return count


@part
def _first_state(room, detections, at, end, counting, bound):
    """The state of those detections from ``at`` to ``end`` whose last mark counts, or does not (``counting``).

    If it does not, the others are rivals.
    """
    numbers, members = room.numbers, room.members
    numbers[N_STEP] += 1
    begin = np.int64(numbers[N_MEMBERS])
    last = begin
    for d in range(at, end):
        root = detections[d, layout.D_ROOT]
        if room.counts[detections[d, layout.D_MARK]] == counting and _sees(room, root, MEMBER, numbers[N_STEP]):
            members[last, E_ROOT] = root
            last += 1
    if last == begin:
        return NOTHING
    place = last
    for d in range(at, end):
        root = detections[d, layout.D_ROOT]
        rival = not counting and room.counts[detections[d, layout.D_MARK]]
        if rival and _sees(room, root, RIVAL, numbers[N_STEP]):
            members[place, E_ROOT] = root
            place += 1
    return _state(room, begin, last, place, bound)


@part
def _written(room, s, root):
    """The root of a member of a state in the new graph, -1 if nothing is left of the member."""
    if s < 0:
        return np.int32(-1)
    low, high = room.states[s, X_MEMBERS], room.states[s, X_RIVALS]
    while low < high:
        middle = (low + high) // 2
        if room.members[middle, E_ROOT] == root:
            return room.members[middle, E_NEW]
        if room.members[middle, E_ROOT] < root:
            low = middle + 1
        else:
            high = middle
    return np.int32(-1)


@inlined
def _add(room, count, mark, child, member):
    """Add a part to a member in the new graph, if anything is left of its child; returns the number of nodes."""
    if child < 0:
        return count
    if count >= room.new.shape[0]:
        room.numbers[N_FULL] = 1
        return count
    room.members[member, E_NEW] = write_part(room, count, mark, child, room.members[member, E_NEW])
    return count + 1


@part
def _write(room, s, count):
    """Write the members of a state, after those of the states that its steps lead to; returns the number of nodes."""
    members, states, steps, parts = room.members, room.states, room.steps, room.parts
    alone = states[s, X_STEPS] == states[s, X_STEPS_END] and states[s, X_RIVALS] == states[s, X_END]
    for m in range(states[s, X_MEMBERS], states[s, X_RIVALS]):
        ended = alone and room.lists[room.place[members[m, E_ROOT]], L_END] == 1
        members[m, E_NEW] = layout.BOTTOM if ended else -1
    for k in range(states[s, X_STEPS_END] - 1, states[s, X_STEPS] - 1, -1):
        child = _written(room, steps[k, P_TO], steps[k, P_CHILD])
        count = _add(room, count, steps[k, P_MARK], child, steps[k, P_MEMBER])
    # Children have smaller numbers, so they are written before.
    for m in range(states[s, X_MEMBERS], states[s, X_RIVALS]):
        which = room.place[members[m, E_ROOT]]
        for k in range(room.lists[which, L_FIRST], room.lists[which, L_LAST]):
            if not room.counts[parts[k, P_MARK]]:
                count = _add(room, count, parts[k, P_MARK], _written(room, s, parts[k, P_CHILD]), m)
    return count


@kernel
def largest(detections, at, *given):
    """Write what is left of the detections from number ``at`` on; ``given`` is a `Room`."""
    room = Room(*given)
    numbers, order = room.numbers, room.order
    numbers[N_FULL] = 0
    done, written = 1, 0
    while at < detections.shape[0]:
        end = event_end(detections, at)
        bound = detections[at, layout.D_BOUND]
        for k in (N_LISTS, N_PARTS, N_STATES, N_MEMBERS):
            numbers[k] = 0
        with_mark = _first_state(room, detections, at, end, True, bound)
        without = _first_state(room, detections, at, end, False, bound)
        steps, s = 0, 0
        while s < numbers[N_STATES] and numbers[N_FULL] == 0:
            steps = _steps_from(room, s, steps, bound)
            # Steps lead to states whose latest mark is earlier.
            first = room.states[s, X_STEPS]
            order[s, 0], order[s, 1] = s, room.steps[first, P_MARK] if steps > first else -1
            s += 1
        if numbers[N_FULL] == 1 or written + end - at > room.found.shape[0]:
            return at, done, written
        sort_rows(order, 0, s, 1, True)
        count = done
        for k in range(s - 1, -1, -1):
            count = _write(room, order[k, 0], count)
        if numbers[N_FULL] == 1:
            return at, done, written
        done = count
        for d in range(at, end):
            state = with_mark if room.counts[detections[d, layout.D_MARK]] else without
            root = _written(room, state, detections[d, layout.D_ROOT])
            if root >= 0:
                written = write_detection(room, written, detections, d, root)
        at = end
    return at, done, written
