"""How the tests of a query are evaluated: which read only one text, which call predicates, which columns they read."""

from __future__ import annotations

from dataclasses import dataclass, field

from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.binding import calls_in
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED, Precomputed
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.condition import Attribute, Condition, Function
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import Node, walk
from cerflow.language.select import Select
from cerflow.logic.conditions.guards import StreamTest, TypeTest


def columns_of_test(tree: Node, tables: TransducerTables) -> frozenset[str]:
    """The columns that a test or expression reads."""
    schema = tables.schema
    found: set[str | None] = set()
    for current in walk(tree):
        match current:
            case Attribute():
                found.add(schema.column(current.name))
            case TypeTest(stream=None):
                found.add(schema.type)
            case TypeTest():
                found.update((schema.type, schema.stream))
            case StreamTest():
                found.add(schema.stream)
            case Precomputed():
                found.add(PRECOMPUTED)
            case Function("time"):
                found.add(schema.time)
    return frozenset(name for name in found if name is not None)


def columns_read(tables: TransducerTables, select: Select) -> frozenset[str]:
    """The columns that the tables of a query read: in tests and expressions, in windows, and as partition keys."""
    trees: list[Node] = [*tables.tests, *(c.expression for c in tables.columns if c.expression is not None)]
    found = {name for tree in trees for name in columns_of_test(tree, tables)}
    windows = [tables.transducer.window, *(column.window for column in tables.columns)]
    found.update(window.attribute for window in windows if isinstance(window, AttributeWindow))
    found.update(tables.schema.column(name) for key in select.partition for name in key)
    return frozenset(found)


@dataclass(frozen=True)
class Evaluation:
    """The evaluation plan for the tests and columns of some tables, independent of the events."""

    #: Tests that are evaluated once per distinct string, by the column they read; and all others.
    by_string: dict[str, dict[int, Condition]]
    others: list[int]
    #: For tests with predicates: the other tests of each transition, those without predicates.
    before: dict[int, list[frozenset[int]]]
    #: The columns whose expressions call predicates.
    asking: frozenset[int]
    #: The tests of text, with the results for texts so far.
    texts: TextTests
    #: For sets of satisfied tests of text, whether such events may be relevant, as far as computed.
    relevant: dict[frozenset[int], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: TransducerTables) -> Evaluation:
        """The evaluation plan of some tables."""
        by_string: dict[str, dict[int, Condition]] = {}
        others: list[int] = []
        asking = {t for t, test in enumerate(tables.tests) if calls_in(test)}
        places = ("position",) if tables.schema.time is not None else ("position", "time")
        for number, test in enumerate(tables.tests):
            read = columns_of_test(test, tables)
            name = next(iter(read)) if len(read) == 1 else None
            positional = any(isinstance(n, Function) and n.name in places for n in walk(test))
            apart = positional or number in asking
            if name is not None and not apart and tables.schema.kind(name) is ValueKind.STRING:
                by_string.setdefault(name, {})[number] = test
            else:
                others.append(number)
        return cls(
            by_string,
            others,
            {t: [others_of - asking for others_of in tables.moves.other_tests(t)] for t in asking},
            frozenset(k for k, c in enumerate(tables.columns) if c.expression is not None and calls_in(c.expression)),
            TextTests(by_string, tables.schema, tables.atoms.unit),
        )

    @property
    def asks(self) -> bool:
        """Whether tests or expressions call predicates."""
        return bool(self.before or self.asking)

    def may_be_relevant(self, tables: TransducerTables, satisfied: frozenset[int]) -> bool:
        """Whether an event whose texts satisfy exactly these tests may be relevant, whatever its other tests give."""
        if satisfied not in self.relevant:
            self.relevant[satisfied] = tables.moves.may_be_relevant(satisfied, frozenset(self.others))
        return self.relevant[satisfied]
