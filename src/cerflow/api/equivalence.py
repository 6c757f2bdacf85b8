"""Questions about formulas whatever the stream: are two the same, does one contain the other, can one match at all.

Formulas are read in the second-order reading, or with ``reading="first-order"`` as those of first-order CEL; a `Query`
has a reading of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, TypedDict, Unpack

import pyarrow as pa

from cerflow.api.query import Query, Reading
from cerflow.api.reference import is_detected
from cerflow.base import limits
from cerflow.base.errors import ArgumentError, Located, QueryError, UnsupportedQueryError, one_of
from cerflow.base.schema import Schema
from cerflow.language import formula as formulas
from cerflow.language.builder.formulas import FormulaExpr
from cerflow.language.builder.given import formula_tree
from cerflow.language.select import Select
from cerflow.logic.analysis.scopes import labels_of, relation_names
from cerflow.logic.analysis.types import check_types
from cerflow.theory.deciding.equivalence import find_difference, shortest_match
from cerflow.theory.deciding.witnesses import Answer, Budget, Replay, Witness

#: A formula as a tree, in the notation of the builder, as text, or a query, of which only its formula counts.
FormulaLike = formulas.Formula | FormulaExpr | str | Query
#: What distinguishes matches: labelled events, or their positions alone.
Output = Literal["labels", "positions"]


class DecisionOptions(TypedDict, total=False):
    """What is asked of two formulas, as `equivalent` explains it."""

    schema: Schema | None
    steps: int | None
    output: Output
    reading: Reading


@dataclass(frozen=True)
class Verdict:
    """The answer to a question about formulas, with the stream that proves it where there is one.

    ``verdict`` is True or False, or None if it is unknown; then ``reason`` says why. A verdict can be used as a
    condition; an unknown one then raises `ArgumentError`. ``stream`` is a list of events for `Query.match` (and
    ``table`` the same as an Arrow table of the given ``schema``, which has types also where all values are null), in
    which ``complex_event``, pairs of label and position, is detected at position ``detected_at`` by the formula that
    ``detected_by`` names, and not by the other one. Positions have the label ``•`` where labels do not count.
    """

    verdict: bool | None
    stream: list[dict[str, Any]] | None = None
    detected_at: int | None = None
    complex_event: frozenset[tuple[str, int]] | None = None
    detected_by: Literal["first", "second"] | None = None
    reason: str | None = None
    schema: pa.Schema | None = None

    def __bool__(self) -> bool:
        if self.verdict is None:
            raise ArgumentError(f"not known: {self.reason}")
        return self.verdict

    @property
    def table(self) -> pa.Table | None:
        """The stream as an Arrow table, None if there is no stream."""
        return None if self.stream is None else pa.Table.from_pylist(self.stream, self.schema)

    def __repr__(self) -> str:
        if self.verdict is None:
            return f"<Verdict unknown: {self.reason}>"
        if self.stream is None or self.complex_event is None:
            return f"<Verdict {self.verdict}>"
        pairs = ", ".join(f"{label}@{place}" for label, place in sorted(self.complex_event, key=lambda p: (p[1], p[0])))
        by = "" if self.detected_by is None else f" only by the {self.detected_by}"
        return f"<Verdict {self.verdict}: {{{pairs}}} detected at {self.detected_at}{by} in {self.stream}>"


def equivalent(
    f: FormulaLike,
    g: FormulaLike,
    *,
    schema: Schema | None = None,
    steps: int | None = None,
    output: Output = "labels",
    reading: Reading = "second-order",
) -> Verdict:
    """Whether two formulas have the same matches, labels included, in every stream (P1 Proposition 1).

    If not, the verdict has a shortest stream in which they differ. All streams count: attributes may be of any kind
    that fits both formulas and may be null; a `Schema` fixes their kinds. Only the formula of a query counts, not its
    window, keys or strategy. With ``output="positions"`` labels do not count (P2 §4), and neither do they where one of
    the two is read as first-order: its matches are sets of positions. If a condition cannot be analysed (arithmetic,
    functions, REGEXP, times), the verdict may be unknown, and the stream need not be a shortest one.

    Conditions that relate events are decided with the extra ``cerflow[decide]``: below a window of events, and where
    the labels of the events determine the run; elsewhere the verdict may be unknown. Every stream is replayed by the
    reference semantics.

    Raises `QueryError` if a formula is invalid or no events fit both. Raises `UnsupportedQueryError` if more than
    ``steps`` steps would be needed, as the automata of the formulas are determinised, which can make them exponentially
    larger; and without the extra for conditions that relate values of several events and windows other than ``n
    EVENTS``.

    >>> import cerflow
    >>> cerflow.equivalent("(A ; B) ; C", "A ; (B ; C)")
    <Verdict True>
    >>> cerflow.equivalent("A ; B", "A : B")
    <Verdict False: {A@0, B@2} detected at 2 only by the first in [{'type': 'A'}, {'type': 'other'}, {'type': 'B'}]>
    """
    answer = _compared(f, g, one_sided=False, schema=schema, steps=steps, output=output, reading=reading)
    return _verdict(answer, wanted=False)


def difference(f: FormulaLike, g: FormulaLike, **asked: Unpack[DecisionOptions]) -> Verdict:
    """Whether some match is one of ``f`` or ``g`` alone, with a shortest stream; the opposite of `equivalent`.

    `cerflow.automata.difference` asks this of automata.

    >>> import cerflow
    >>> cerflow.difference("A AS x", "A AS y", reading="first-order")
    <Verdict False>
    >>> cerflow.difference("A ; B", "A : B", output="positions")
    <Verdict True: {•@0, •@2} detected at 2 only by the first in [{'type': 'A'}, {'type': 'other'}, {'type': 'B'}]>
    """
    return _verdict(_compared(f, g, one_sided=False, **asked), wanted=True)


def contained(f: FormulaLike, g: FormulaLike, **asked: Unpack[DecisionOptions]) -> Verdict:
    """Whether every match of ``f`` is one of ``g`` in every stream; otherwise as `equivalent`.

    >>> import cerflow
    >>> bool(cerflow.contained("A FILTER A.v > 2", "A FILTER A.v > 1"))
    True
    """
    return _verdict(_compared(f, g, one_sided=True, **asked), wanted=False)


def satisfiable(
    f: FormulaLike, *, schema: Schema | None = None, steps: int | None = None, reading: Reading = "second-order"
) -> Verdict:
    """Whether a formula has a match in any stream, with a shortest such stream; otherwise as `equivalent`.

    With the extra ``cerflow[decide]`` comparisons with constants and between events are decided, whatever is repeated.

    >>> import cerflow
    >>> cerflow.satisfiable("A FILTER A.v > 3 AND A.v < 2")
    <Verdict False>
    >>> cerflow.satisfiable("A ; B FILTER B.v > 3")
    <Verdict True: {A@0, B@1} detected at 1 in [{'type': 'A', 'v': None}, {'type': 'B', 'v': 4}]>
    """
    query = _checked(f, reading, schema)
    formula = query.tree.formula
    with Located(query.text):
        answer = shortest_match(formula, schema=schema, budget=Budget(steps), replay=_replay([formula], schema))
    return replace(_verdict(answer, wanted=True), detected_by=None)


def universal(f: FormulaLike, **asked: Unpack[DecisionOptions]) -> Verdict:
    """Whether a formula has all complex events, in every stream; otherwise as `equivalent`.

    All are those that mark at least one event, the last one where they are detected, and of each marked event the type
    and any of the labels that the formula gives with AS. So ``EVENT+`` is universal, and so is ``(EVENT OR EVENT AS
    x)+``. With ``output="positions"``, and in the first-order reading, all nonempty sets of positions are asked for.
    Of a formula ``φ WITHIN n EVENTS`` it is asked whether it has all within the window; that is decided with conditions
    between events, too.
    If the formula is not universal, the verdict has a shortest stream with a complex event that it lacks.

    Raises `UnsupportedQueryError` for more than six labels, too.

    >>> import cerflow
    >>> cerflow.universal("(A OR NOT(A))+")
    <Verdict True>
    >>> cerflow.universal("A+ AS x", output="positions")
    <Verdict False: {•@0} detected at 0 in [{'type': 'other'}]>
    """
    query = _checked(f, asked.get("reading", "second-order"), asked.get("schema"))
    formula = query.tree.formula
    alone = asked.get("output") == "positions" or query.reading == "first-order"
    labels = [] if alone else sorted(labels_of(formula).assigned - relation_names(formula))
    if len(labels) > limits.UNIVERSAL_LABELS:
        reason = f"whether a formula with {len(labels)} labels has all complex events takes too long to decide"
        hint = 'With output="positions" labels do not count.'
        raise UnsupportedQueryError(reason, hint=hint).with_source(query.text)
    each: list[formulas.Formula] = [formulas.AnyEvent()]
    for label in labels:
        each += [formulas.As(some, label) for some in each]
    everything: formulas.Formula = formulas.Iteration(reduce(formulas.Disjunction, each))
    if isinstance(formula, formulas.Within) and isinstance(formula.window, formulas.CountWindow):
        everything = formulas.Within(everything, formula.window)
    answer = _compared(everything, f, one_sided=True, **asked)
    return replace(_verdict(answer, wanted=False), detected_by=None)


def _compared(f: FormulaLike, g: FormulaLike, *, one_sided: bool, **asked: Unpack[DecisionOptions]) -> Answer:
    schema, output = asked.get("schema"), asked.get("output", "labels")
    one_of(output, "output", "labels", "positions")
    queries = [_checked(given, asked.get("reading", "second-order"), schema) for given in (f, g)]
    first, second = (query.tree.formula for query in queries)
    if output == "positions" or any(query.reading == "first-order" for query in queries):
        first, second = formulas.positions_alone(first), formulas.positions_alone(second)
    replay, budget = _replay([first, second], schema), Budget(asked.get("steps"))
    return find_difference(first, second, one_sided=one_sided, schema=schema, budget=budget, replay=replay)


def _replay(given: Sequence[formulas.Formula], schema: Schema | None) -> Replay:
    """Whether by definition the formula on the side of a witness has its match, and the other one has not."""

    def replay(witness: Witness) -> bool:
        columns = witness.columns
        known = Schema(columns, stream="stream" if "stream" in columns.names else None)
        if schema is not None:
            known = replace(schema, columns=columns)
        table = pa.Table.from_pylist([dict(event) for event in witness.events], columns)
        try:
            has = [is_detected(formula, witness.complex_event, table, known) for formula in given]
        except QueryError:
            # Windows of time ask for times, which are not made up.
            return False
        return has == [side == witness.side for side in range(len(given))]

    return replay


def _verdict(answer: Answer, *, wanted: bool) -> Verdict:
    """The verdict that is true if there is a witness and one is ``wanted``, or if neither is so."""
    witness, verdict = answer.witness, None if answer.exists is None else answer.exists is wanted
    if witness is None:
        return Verdict(verdict, reason=answer.reason)
    return Verdict(
        verdict,
        [dict(event) for event in witness.events],
        witness.detected_at,
        frozenset(("•" if label == formulas.UNNAMED else label, place) for label, place in witness.complex_event),
        "second" if witness.side else "first",
        schema=witness.columns,
    )


def _checked(given: FormulaLike, reading: Reading, schema: Schema | None) -> Query:
    """A formula as a query, whose formula fits the schema."""
    if not isinstance(given, Query):
        given = Query(formula_tree(given), text=given if isinstance(given, str) else None, reading=reading)
    formula = given.tree.formula
    if schema is not None:
        with Located(given.text):
            check_types(Select(formula), schema)
    return given
