"""Warnings of probable mistakes in a query: before it runs, and when it finds nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from cerflow.automata.model.transducer import Transducer
from cerflow.base import limits
from cerflow.base.errors import QueryWarning, Span, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.engine.recognize.planning import detects_only, transducer_of
from cerflow.language.formula import CountWindow, DurationWindow
from cerflow.language.node import walk
from cerflow.language.select import Select
from cerflow.language.sremo import with_fields
from cerflow.logic.analysis.event_types import doubtful_types, types_named_in
from cerflow.logic.rewriting.gaps import with_windows_of_gaps
from cerflow.theory.deciding.remarks import Remark, kept_for_good, remarks, remarks_on_no_match


class Warner:
    """Finds the warnings of a query, whose formula stands at ``span`` in ``text``; ``branches`` asks about OR."""

    def __init__(
        self, tree: Select, text: str | None, span: Span | None, transducer: Callable[[], Transducer], *, branches: bool
    ) -> None:
        self._tree, self._text, self._span = tree, text, span
        self._transducer, self._branches = transducer, branches
        self._window = tree.window if isinstance(tree.window, CountWindow) else None
        self._parts = sum(1 for _ in walk(tree.formula))
        #: The schemas for which it was asked why nothing matches.
        self._explained: list[Schema] = []

    def warnings(
        self, schema: Schema | None, times: tuple[float | None, float | None] | None
    ) -> tuple[QueryWarning, ...]:
        """What is certain for all events, and what ``times`` let one doubt; see `Query.warnings`."""
        formula = self._tree.formula if schema is None else with_fields(self._tree.formula, schema.attributes)
        found = remarks(formula, window=self._window, branches=self._branches, schema=schema)
        if self._parts <= limits.REMARK_OPTIMISED_NODES and self._tree.window is None:
            with suppress(UnsupportedQueryError):
                bounded = with_windows_of_gaps(self._tree, schema)
                transducer = self._transducer() if bounded is self._tree else transducer_of(bounded)
                found += kept_for_good(transducer, detecting=detects_only(self._tree))
        doubts = () if schema is None or times is None else self.of_times(schema, times)
        return (*self._of_remarks(found), *doubts)

    def of_times(self, schema: Schema, times: tuple[float | None, float | None]) -> Iterator[QueryWarning]:
        """A warning if the least and the greatest time look like another unit than that they count as."""
        window = next((node for node in walk(self._tree) if isinstance(node, DurationWindow)), None)
        text = None if window is None else schema.doubtful_unit(*times)
        if window is not None and text is not None:
            yield self._placed(QueryWarning(text, span=window.span))

    def of_types(self, occurring: Collection[str], where: str = "input") -> list[QueryWarning]:
        """A warning for each type that the query names and that is not among those of the events."""
        # The events of a definition, which is read as a stream, have its name as their type.
        named = types_named_in(self._tree)
        asked = {name: span for name, span in named.items() if name not in self._tree.streams}
        return doubtful_types(asked, occurring, self._text, where=where)

    def of_no_match(self, schema: Schema, events: pa.Table) -> Iterator[QueryWarning]:
        """What may explain that these events have no match; reasons that are certain are given once for a schema."""
        if len(events) and types_named_in(self._tree):
            occurring = schema.types_in(events)
            if occurring is not None:
                yield from self.of_types(occurring)
        if schema in self._explained or sum(1 for _ in walk(self._tree)) > limits.REMARK_NODES:
            return
        self._explained.append(schema)
        formula = with_fields(self._tree.formula, schema.attributes)
        yield from self._of_remarks(remarks_on_no_match(formula, window=self._window, schema=schema))

    def _of_remarks(self, found: Iterable[Remark]) -> Iterator[QueryWarning]:
        for remark in found:
            yield self._placed(QueryWarning(remark.text, span=remark.span or self._span))

    def _placed(self, warning: QueryWarning) -> QueryWarning:
        if self._text is not None:
            warning.with_source(self._text)
        return warning
