"""A query before it meets events: what it is, whether it can be evaluated, and probable mistakes in it.

Queries are read and checked often where nothing is matched, so the engine is imported by the methods that need it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from cerflow.base import errors, limits
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.language import condition as c
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.builder.formulas import FormulaExpr
from cerflow.language.builder.sremo import SremoExpr
from cerflow.language.event_kinds import with_kinds
from cerflow.language.formula import CountWindow, DurationWindow, EventKind, EventType, Formula, positions_alone
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import Select
from cerflow.language.sremo import Regular, Sremo, Terminal, names_told_apart, with_fields
from cerflow.logic.analysis.checks import check_query, misreadings
from cerflow.logic.analysis.columns import attributes_in

if TYPE_CHECKING:
    from cerflow.engine.recognize.plan import Plan, Plans
    from cerflow.theory.deciding.remarks import Remark

Language = Literal["ceql", "sremo"]
Reading = Literal["second-order", "first-order"]
#: The type of the event read, in SREMO.
_TYPE = c.Attribute(None, "type")


class CheckedQuery:
    """What `Query` is without events; see there."""

    def __init__(
        self,
        tree: Select | Formula | Sremo | FormulaExpr | SremoExpr,
        *,
        text: str | None = None,
        reading: Reading = "second-order",
        language: Language = "ceql",
    ) -> None:
        errors.one_of(reading, "reading", "second-order", "first-order")
        if isinstance(tree, FormulaExpr | SremoExpr):
            tree = tree.tree
        errors.expect(tree, (Select, Formula, Sremo), "a Query is made of a tree; cerflow.parse reads a text")
        if isinstance(tree, Sremo):
            tree = Regular(tree, span=tree.span)
        if isinstance(tree, Formula):
            tree = Select(tree)
        tree = with_kinds(with_fields(names_told_apart(tree)))
        if reading == "first-order" and any(isinstance(n, Regular | AutomatonFormula) for n in walk(tree)):
            raise errors.QueryError("the first-order reading is for formulas, not for SREMO or automata")
        self.text = text
        self.reading = reading
        self.language = language
        self.written = tree
        self._refused: errors.UnsupportedQueryError | None = None
        #: The schemas for which it was asked why nothing matches.
        self._explained: list[Schema] = []
        with errors.Located(text):
            self._tree = tree if reading == "second-order" else self._from_first_order(tree)
            if self._refused is None:
                check_query(self._tree)

    def _from_first_order(self, tree: Select) -> Select:
        from cerflow.theory.rewriting.first_order import reading

        reading.check_query_of_sets(tree)
        try:
            return reading.query_from_first_order(tree)
        except errors.UnsupportedQueryError as error:
            self._refused = error
            # The columns are the same, and no more is asked of it.
            return replace(tree, formula=positions_alone(tree.formula))

    @property
    def tree(self) -> Select:
        """What is evaluated; raises `UnsupportedQueryError` if the engine cannot evaluate the first-order reading."""
        if self._refused is not None:
            raise self._refused.with_source(self.text)
        return self._tree

    @cached_property
    def _plans(self) -> Plans:
        from cerflow.engine.recognize.plan import Plans

        return Plans(self.tree)

    def __repr__(self) -> str:
        return f"<Query {show(self.written)}>"

    def __str__(self) -> str:
        return show(self.written)

    def plan(self, schema: Schema, position: str | None = None, positions: bool = True) -> Plan:
        """The query made ready for events of a schema (for other parts of cerflow); raises as `recognizer` does."""
        with errors.Located(self.text):
            return self._plans.plan(schema, position, positions)

    def check(self, schema: Schema | None = None) -> None:
        """Whether the engine can evaluate the query (on events of a schema).

        Raises `QueryError` or `UnsupportedQueryError`, with the place.
        """
        schema = self._read_by(schema)
        with errors.Located(self.text):
            if schema is None:
                self._plans.transducer()
            else:
                self._plans.plan(schema)

    def keys_kept(self, schema: Schema | None = None) -> str | None:
        """Why keys with partial matches are remembered for good, and what can be done; None if they are forgotten.

        Raises as `check`.
        """
        from cerflow.engine.slices.division import keys_kept

        schema = self._read_by(schema)
        with errors.Located(self.text):
            transducer = self._plans.transducer() if schema is None else self._plans.plan(schema).transducer
        return keys_kept(self.tree, transducer, schema)

    def warnings(
        self, schema: Schema | None = None, times: tuple[float | None, float | None] | None = None
    ) -> tuple[errors.QueryWarning, ...]:
        """Warnings of probable mistakes: parts that can never match, branches of OR that add nothing,
        NOT and WITHOUT that ask for less than people mean, values of events that are remembered for good.

        ``times``, the least and the greatest time of the events, may show that numbers look like another unit than the
        default; this warning appears if no unit was given and the query has a window of time. Warnings are certain for
        all events (of a schema) and are found within a fraction of a second, so there may be further mistakes. The
        window counts if it is one of events. Raises `QueryError` if the query does not fit the schema.
        """
        from cerflow.engine.recognize.planning import detects_only, transducer_of
        from cerflow.logic.rewriting.implied import with_windows_of_gaps
        from cerflow.theory.deciding.remarks import kept_for_good, remarks

        schema = self._read_by(schema)
        if self._refused is not None:
            return ()
        with errors.Located(self.text):
            if schema is not None:
                self._plans.check(schema)
            tree = self._tree
            formula = tree.formula if schema is None else with_fields(tree.formula, schema.attributes)
            # The user has not written the branches that safe forms have.
            branches = self.reading == "second-order"
            found = remarks(formula, window=self._counted_window, branches=branches, schema=schema)
            if sum(1 for _ in walk(tree.formula)) <= limits.REMARK_OPTIMISED_NODES and tree.window is None:
                with suppress(errors.UnsupportedQueryError):
                    bounded = with_windows_of_gaps(tree, schema)
                    transducer = self._plans.transducer() if bounded is tree else transducer_of(bounded)
                    found += kept_for_good(transducer, detecting=detects_only(tree))
            doubts = () if schema is None or times is None else self._doubtful_times(schema, times)
            return (*self._misreadings, *self._of_remarks(found), *doubts)

    @property
    def _counted_window(self) -> CountWindow | None:
        return self._tree.window if isinstance(self._tree.window, CountWindow) else None

    def warn_of_doubts(self, schema: Schema, times: tuple[float | None, float | None]) -> None:
        """Give Python warnings of what the form of the query or the unit of ``times`` makes doubtful (`warnings`)."""
        for warning in (*self._misreadings, *self._doubtful_times(schema, times)):
            errors.warn(warning)

    @cached_property
    def _misreadings(self) -> list[errors.QueryWarning]:
        return [warning.with_source(self.text) for warning in misreadings(self.written.formula)]

    def _doubtful_times(
        self, schema: Schema, times: tuple[float | None, float | None]
    ) -> Iterator[errors.QueryWarning]:
        window = next((node for node in walk(self._tree) if isinstance(node, DurationWindow)), None)
        text = None if window is None else schema.doubtful_unit(*times)
        if window is not None and text is not None:
            yield errors.QueryWarning(text, span=window.span).with_source(self.text)

    @property
    def reads(self) -> list[str]:
        """The streams that the query reads, or that it reads the input (for other parts of cerflow)."""
        return list(dict.fromkeys(self._tree.streams)) or ["the input"]

    def types_named(self) -> dict[str, errors.Span | None]:
        """The types of events that the query names, each with its first place (for other parts of cerflow).

        Event kinds are not among them. In SREMO these are the texts that the type of the event is compared with.
        """
        found: dict[str, errors.Span | None] = {}
        for node in walk(self._tree):
            if isinstance(node, EventType) and not isinstance(node, EventKind):
                found.setdefault(node.name, node.span)
            elif isinstance(node, Terminal):
                for part in walk(node.condition):
                    if isinstance(part, c.Comparison) and part.operator is Operator.EQ and part.left == _TYPE:
                        found = dict(_texts((part.right,))) | found
                    elif isinstance(part, c.In) and part.operand == _TYPE:
                        found = dict(_texts(part.items)) | found
        return found

    def doubtful_types(self, occurring: Collection[str], where: str = "input") -> list[errors.QueryWarning]:
        """A warning for each type that the query names and that no event has, with a similar one."""
        few = len(occurring) <= limits.TYPES_LOOKED_FOR
        warnings = []
        for name, span in self.types_named().items():
            # The events of a definition, which is read as a stream, have its name as their type.
            if name in occurring or name in self._tree.streams:
                continue
            near = errors.nearest(name, occurring) if few else None
            hint = f"Did you mean '{near}'?" if near else None
            if few and occurring and not near:
                hint = f"The types are {', '.join(sorted(occurring))}."
            behind = re.match(r"\s*:\s*(\w+)", self.text[span.end :]) if self.text and span else None
            if behind and behind[1] in occurring and near in (None, behind[1]):
                hint = f"A label comes after its type: {behind[1]} AS {name}; A : B is a B directly after an A."
            reason = f"no event of the {where} has the type '{name}'"
            warnings.append(errors.QueryWarning(reason, span=span, hint=hint).with_source(self.text))
        return warnings

    def warn_of_no_match(self, schema: Schema, events: pa.Table) -> None:
        """Give Python warnings that may explain why nothing matches, those that are certain once for a schema.

        See `Query.match`.
        """
        named = self.types_named()
        occurring = schema.types_in(events, named) if len(events) and named else None
        for doubt in () if occurring is None else self.doubtful_types(occurring):
            errors.warn(doubt)
        if schema in self._explained or sum(1 for _ in walk(self._tree)) > limits.REMARK_NODES:
            return
        from cerflow.theory.deciding.remarks import remarks_on_no_match

        self._explained.append(schema)
        formula = with_fields(self._tree.formula, schema.attributes)
        for warning in self._of_remarks(remarks_on_no_match(formula, window=self._counted_window, schema=schema)):
            errors.warn(warning)

    def _of_remarks(self, found: Iterable[Remark]) -> Iterator[errors.QueryWarning]:
        for remark in found:
            span = remark.span or self.written.formula.span
            yield errors.QueryWarning(remark.text, span=span).with_source(self.text)

    def _read_by(self, schema: Schema | None) -> Schema | None:
        """The schema with the nested attributes that the query reads; raises `ArgumentError` for anything else."""
        if schema is None:
            return None
        errors.expect(
            schema, Schema, "the schema must be a cerflow.Schema, such as cerflow.Schema(table.schema, time='t')"
        )
        return schema.reading(attributes_in(self._tree))


def _texts(expressions: Iterable[c.Expression]) -> Iterator[tuple[str, errors.Span | None]]:
    return ((e.value, e.span) for e in expressions if isinstance(e, c.Literal) and isinstance(e.value, str))
