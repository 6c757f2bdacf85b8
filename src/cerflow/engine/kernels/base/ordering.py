"""Binary heaps and sorting, by an order that a part gives."""

from __future__ import annotations

from typing import Any

from cerflow.engine.kernels.base.parts import part


def heap_by(precedes: Any, name: str) -> tuple[Any, Any]:
    """Parts that put an entry into a heap, and take the first one out, whose place becomes free.

    The heap lies in an array from ``begin`` up to ``end``. ``precedes(one, other, given)`` says which entry comes
    first; ``name`` tells these parts from others.
    """

    def put(heap, begin, end, entry, given):
        at = end
        while at > begin:
            above = begin + (at - begin - 1) // 2
            if not precedes(entry, heap[above], given):
                break
            heap[at] = heap[above]
            at = above
        heap[at] = entry

    def take(heap, begin, end, given):
        first, last = heap[begin], heap[end - 1]
        # The last entry takes its place, and sinks.
        at, below = begin, begin + 1
        while below < end - 1:
            if below + 1 < end - 1 and precedes(heap[below + 1], heap[below], given):
                below += 1
            if not precedes(heap[below], last, given):
                break
            heap[at] = heap[below]
            at, below = below, begin + 2 * (below - begin) + 1
        heap[at] = last
        return first

    put.__qualname__, take.__qualname__ = f"put {name}", f"take {name}"
    return part(put), part(take)


def sort_by(precedes: Any, name: str) -> Any:
    """A part that sorts rows from ``first`` up to ``last`` in place (Shell's sort).

    ``precedes(rows, one, other, given)`` says which of two rows comes first; ``name`` tells the part from others.
    """

    def sort(rows, first, last, given):
        gap = 1
        while gap < (last - first) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(first + gap, last):
                at = i
                while at - gap >= first and precedes(rows, at, at - gap, given):
                    for k in range(rows.shape[1]):
                        rows[at, k], rows[at - gap, k] = rows[at - gap, k], rows[at, k]
                    at -= gap
            gap //= 3

    sort.__qualname__ = f"sort {name}"
    return part(sort)
