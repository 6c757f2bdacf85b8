"""Graphs of any kind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
E = TypeVar("E")
V = TypeVar("V")
Q = TypeVar("Q")


def grouped(size: int, pairs: Iterable[tuple[int, E]]) -> list[list[E]]:
    """For each number below a size what comes with it in pairs: for each node, say, the other ends of its edges."""
    found: list[list[E]] = [[] for _ in range(size)]
    for number, value in pairs:
        found[number].append(value)
    return found


def gathered(pairs: Iterable[tuple[N, E]]) -> dict[N, list[E]]:
    """For each first part of some pairs, in their order, the second parts that come with it."""
    found: dict[N, list[E]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def visited(start: Iterable[N], following: Callable[[N], Iterable[N]], *, depth_first: bool = False) -> Iterator[N]:
    """The nodes that paths from some nodes lead to, these too, as they are found: breadth first, or depth first."""
    found = set(frontier := deque(dict.fromkeys(start)))
    yield from list(frontier)
    while frontier:
        for other in following(frontier.pop() if depth_first else frontier.popleft()):
            if other not in found:
                found.add(other)
                frontier.append(other)
                yield other


def reached(start: Iterable[N], following: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """The nodes that paths from some nodes lead to, these included, breadth first."""
    return dict.fromkeys(visited(start, following))


def reached_along(edges: Iterable[tuple[N, N]], start: Iterable[N]) -> dict[N, None]:
    """The same, by pairs of a node and one that follows it."""
    ahead = gathered(edges)
    return reached(start, lambda node: ahead.get(node, ()))


def on_paths(starts: Iterable[N], ends: Iterable[N], edges: Iterable[tuple[N, N]]) -> set[N]:
    """The nodes on paths from some nodes to others."""
    ways = list(edges)
    return {*reached_along(ways, starts)} & reached_along(((target, source) for source, target in ways), ends).keys()


def answered(question: Q, rule: Callable[[Q], Generator[Q, V, V]], known: dict[Q, V] | None = None) -> V:
    """The answer to a question by a rule, which asks for the answers to others: recursion that may be as deep as it is.

    Answers in ``known`` are not looked for again, and new ones go there. An error is raised where the answer was asked.
    """
    stack = [(question, rule(question))]
    answer: V | None = None
    failure: Exception | None = None
    while stack:
        current, running = stack[-1]
        try:
            asked = running.throw(failure) if failure is not None else running.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            answer, failure = end.value, None
            if known is not None:
                known[current] = end.value
            stack.pop()
        except Exception as error:
            answer, failure = None, error
            stack.pop()
        else:
            failure = None
            answer = None if known is None else known.get(asked)
            if answer is None:
                stack.append((asked, rule(asked)))
    if failure is not None:
        raise failure
    assert answer is not None
    return answer


def settled_values(
    begin: Mapping[N, V], edges: Iterable[tuple[N, N, E]], along: Callable[[E, V], V], joined: Callable[[V, V], V]
) -> dict[N, V]:
    """For each node the value that it begins with, joined with what each edge into it makes of the value at its source.

    These are the least values that hold along all edges, or the greatest; nodes that none of the first ones leads to
    have none.
    """
    leaving = gathered((source, (target, edge)) for source, target, edge in edges)
    found = dict(begin)
    pending = list(found)
    while pending:
        node = pending.pop()
        for target, edge in leaving.get(node, ()):
            given = along(edge, found[node])
            value = joined(found[target], given) if target in found else given
            if target not in found or value != found[target]:
                found[target] = value
                pending.append(target)
    return found
