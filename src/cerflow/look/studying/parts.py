"""The steps of a trace told of the parts of the query: which have their event, wait for one or refuse it, until when.

A twin of the query is traced in which each single event of the pattern has a label of its own, so that events of the
same type, or without a label, are told apart.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from cerflow.automata.model.clock import reads_tick
from cerflow.base.errors import counted
from cerflow.language import formula as f
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.language.select import Projection, ProjectionKind, Select
from cerflow.logic.rewriting.rebuild import transformed
from cerflow.look.pictures.boxes import Mark
from cerflow.look.studying.samples import StudiedEvents
from cerflow.look.studying.steps import PassedDeadline, TracedEvent
from cerflow.look.studying.tracing import Trace
from cerflow.look.studying.wording import shown_duration

_SINGLE = (f.EventType, f.EventKind, f.AnyEvent, f.NotEvent)
#: Positions that a mark lists.
_LISTED = 4


def _own(occurrence: int) -> str:
    """The label of a single event of the pattern, which no query can have."""
    return f"\0{occurrence}"


def _refused(root: Node) -> Iterator[Node]:
    """The parts that stand for what must not happen."""
    for node in walk(root):
        if isinstance(node, f.Exclusion):
            yield from walk(node.right)
        elif isinstance(node, f.NotEvent):
            yield from walk(node.event)


class TracedParts:
    """The steps of a query over a sample, told of the parts of its tree; raises as `Trace`."""

    def __init__(self, select: Select, sample: StudiedEvents) -> None:
        self.tree = select
        refused = {*map(id, _refused(select))}
        #: The single events that a match has, by their labels.
        self._events = {
            _own(k): node
            for k, node in enumerate(walk(select))
            if isinstance(node, _SINGLE) and id(node) not in refused
        }
        # A part with a label or conditions is one box, which belongs to the outermost of these.
        self._boxes: dict[int, Node] = {}
        for node in walk(select):
            inner = self._boxes.get(id(node.operand)) if isinstance(node, f.As | f.Filter) else None
            if inner is not None or isinstance(node, _SINGLE):
                self._boxes[id(node)] = inner or node
        self._outer = {id(inner): id_ for id_, inner in self._boxes.items()}

        def named(k: int, current: Node) -> Node:
            if _own(k) in self._events:
                assert isinstance(current, f.Formula)
                return f.As(current, _own(k))
            if isinstance(current, f.Project):
                own = [node.label for node in walk(current) if isinstance(node, f.As) and node.label in self._events]
                return replace(current, labels=(*current.labels, *own))
            return current

        twin = replace(transformed(select, named), projection=Projection(ProjectionKind.ALL))
        self._trace = Trace(twin, sample)

    def marks(self, place: int, number: int) -> dict[int, Mark]:
        """The marks of a step, by the identity of nodes of the tree: of a deadline before an event, or of the event."""
        step = self._trace[place].steps[number]
        if isinstance(step, TracedEvent) and step.unread is not None:
            return {}
        found = {self._outer[id(node)]: self._of_event(label, step) for label, node in self._events.items()}
        found |= self._of_windows(step)
        ended = [death for death in step.died if death.reason != "guard"]
        refused = [death.configuration for death in step.died if death.reason == "guard"]
        if refused and isinstance(step, TracedEvent):
            found |= self._ended(step, sum(one.count for one in refused if not one.waiting))
        if ended:
            lines = [f"✗ {death.count:,} given up: {death.words}" for death in ended[:2]]
            found[id(self.tree)] = Mark((*found.get(id(self.tree), Mark()).lines, *lines), "cs-refused")
        return found

    def _of_event(self, label: str, step: TracedEvent | PassedDeadline) -> Mark:
        transitions = self._trace.transducer.transitions
        lines, kinds = [], []
        if any(label in firing.labels for firing in step.fired):
            lines.append("✓ this event")
            kinds.append("cs-taken")
        # An event of another type is not refused: it is not asked about.
        reasons = [
            r.because
            for r in step.refused
            if label in transitions[r.transition].labels and not any("(type = " in part for part in r.because)
        ]
        if reasons:
            lines += [f"✗ {self._plain(reason)}" for reason in dict.fromkeys(map(" and ".join, reasons))][:2]
            kinds.append("cs-refused")
        before = {t.source for t in transitions if label in t.labels}
        waiting = [c for c in step.living if c.state in before]
        known = chain(step.matches, *(configuration.some for configuration in step.living))
        done = sorted({p for pairs in known for own, p in pairs if own == label})
        if done and "cs-taken" not in kinds:
            more = "" if len(done) <= _LISTED else " …"
            lines.append(f"✓ event {', '.join(map(str, done[-_LISTED:]))}{more}")
            kinds.append("cs-done")
        if waiting:
            number = sum(configuration.count for configuration in waiting)
            begins = number == 1 and waiting[0].waiting
            lines.append("… may begin" if begins else f"… {number:,} {'waits' if number == 1 else 'wait'} for it")
            kinds.append("cs-waiting")
        return Mark(tuple(lines), kinds[0] if kinds else "cs-idle")

    def _plain(self, reason: str) -> str:
        """A reason with what registers mean in place of their names."""
        registers = self._trace.transducer.registers
        return re.sub(r"\br(\d+)\b", lambda found: registers[int(found[1])].meaning, reason)

    def _of_windows(self, step: TracedEvent | PassedDeadline) -> dict[int, Mark]:
        """What is left of the windows and deadlines of partial matches, the least first."""
        if isinstance(step, PassedDeadline):
            return {}
        marks = {}
        ticking = {t.source for t in self._trace.transducer.transitions if reads_tick(t)}
        for node in walk(self.tree):
            if not isinstance(node, Select | f.Within | f.NotFollowedBy) or node.window is None:
                continue
            waits = isinstance(node, f.NotFollowedBy)
            below = {id(inner) for inner in walk(node.left if isinstance(node, f.NotFollowedBy) else node)}
            own = {label for label, inner in self._events.items() if id(inner) in below}
            choose = max if waits else min
            begun = [
                choose(p for label, p in pairs if label in own)
                for configuration in step.living
                if not waits or configuration.state in ticking or isinstance(node.window, f.CountWindow)
                for pairs in configuration.some
                if any(label in own for label, _ in pairs)
            ]
            lefts = [(found, p) for p in dict.fromkeys(begun) if (found := self._trace.left(node.window, p, step))]
            if lefts:
                (left, size), since = min(lefts)
                said = f"{self._shown(left, node.window)} left, since event {since}"
                marks[id(node)] = Mark((said,), "cs-time", 1 - left / size)
        return marks

    def _shown(self, left: float, window: f.Window) -> str:
        if isinstance(window, f.DurationWindow):
            per_tick = self._trace.sample.events.microseconds_per_tick
            assert per_tick is not None
            return shown_duration(datetime.timedelta(microseconds=float(left * per_tick)))
        return f"{left:g} events" if isinstance(window, f.CountWindow) else f"{left:g} of {show(window)}"

    def _ended(self, step: TracedEvent, count: int) -> dict[int, Mark]:
        """Where an event ends partial matches: at what must not happen, or at the whole."""
        at: list[Node] = [
            node
            for node in walk(self.tree)
            if isinstance(node, f.Exclusion | f.NotEvent)
            for inner in walk(node.right if isinstance(node, f.Exclusion) else node)
            # Conditions are not looked at.
            if isinstance(inner, _SINGLE) and (not isinstance(inner, f.EventType) or inner.name == step.event.type)
        ]
        said = f"✗ this event ends {counted(count, 'partial match', 'partial matches')}"
        said = said if count else "✗ nothing can begin after this event"
        return {id(node): Mark((said,), "cs-refused") for node in at or [self.tree]}
