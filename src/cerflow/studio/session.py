"""The work of a user of the studio: a text, a sample of events, and the results. It does not depend on a browser."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.equivalence import Verdict, contained, equivalent
from cerflow.api.programs.program import Program, read_query
from cerflow.api.programs.studied import StudiedPart
from cerflow.api.query import Language, Query
from cerflow.automata.model.transducer import Transducer
from cerflow.base import limits
from cerflow.base.errors import CerflowError, QueryError, QuerySyntaxError, QueryWarning, UnsupportedQueryError
from cerflow.base.nested import is_nested
from cerflow.base.schema import Schema
from cerflow.engine.kernels.base.library import find_library
from cerflow.engine.recognize.planning import compile_select
from cerflow.language.formula import EventType
from cerflow.language.printer import show
from cerflow.logic.analysis.columns import attributes_in
from cerflow.look.studying.samples import StudiedEvents
from cerflow.look.studying.steps import Pairs
from cerflow.look.studying.tracing import Trace
from cerflow.look.studying.why_not import WhyNot, why_not
from cerflow.look.studying.wording import cells, shown_pairs
from cerflow.look.viewing.page import ViewedStream, page_of
from cerflow.studio.colouring import completions
from cerflow.studio.runs import Outcome, StoppedError
from cerflow.studio.sampling import QUERIES, SAMPLE, LoadedEvents, load_events, together

#: The space before a clause, and what is passed over in search of it: texts and names in quotes.
_CLAUSE = re.compile(r"""'[^']*'|"[^"]*"| (?=(?:FROM|WHERE|PARTITION BY|WITHIN|CONSUME BY|LIMIT) )""")

#: An error or a warning about a text.
Problem = QuerySyntaxError | QueryError | UnsupportedQueryError | QueryWarning
FIRST_TEXT = "SELECT *\nWHERE A AS x ; B AS y\nWITHIN 10 EVENTS"


class StudioSession:
    """A text and a sample of events."""

    def __init__(self, text: str = FIRST_TEXT, language: Language = "ceql") -> None:
        self.text = text
        self.language: Language = language
        #: The definition that is studied; None: the query after the definitions.
        self.statement: str | None = None
        self.events: LoadedEvents | None = None
        self._studied: tuple[object, StudiedPart] | None = None
        #: Set when the studio ends: work that is under way is to end, too.
        self.closing = threading.Event()
        #: The text that the studio has put there; it goes where it does not fit another file.
        self._proposed = text if text == FIRST_TEXT else ""
        #: The page with the matches in their stream that was drawn last.
        self.matches_page = ""
        #: The last run that came to its end, with the text and the events that it was of.
        self.outcome: Outcome | None = None
        self.ran: tuple[str, LoadedEvents | None] = ("", None)
        #: Writes a table to a file in a format: "csv", "parquet" or "jsonl".
        self.write: Callable[[str, str, pa.Table], object] = lambda target, form, table: None
        #: The most matches that a run lists, and the seconds that it may take.
        self.most, self.seconds = 1000, 30.0
        #: The texts that have been run, the latest first.
        self.history: list[str] = []
        #: Whether the page is dark; None: as the browser says.
        self.dark: bool | None = None

    def twin(self) -> StudioSession:
        """Another session that begins with the text and the events of this one."""
        other = StudioSession(self.text, self.language)
        other.events, other.closing, other.write = self.events, self.closing, self.write
        return other

    def load(self, path: Path, *, name: str | None = None, **columns: Any) -> LoadedEvents:
        """Load a sample of a file, see `load_events` also for the other arguments and errors.

        A file with a ``name`` joins those that have names already, as a stream that queries read by FROM.
        """
        loaded = load_events(path, **columns)
        if name is not None:
            loaded = together({**(self.events.inputs if self.events else {}), name: loaded})
        first, self.events = self.events is None, loaded
        if self.text in (self._proposed, *QUERIES.values()) and (first or self.problems() or self.doubts()):
            self._propose(loaded)
        return loaded

    def _propose(self, loaded: LoadedEvents) -> None:
        """Put a first query there that can be run."""
        if loaded.source == SAMPLE:
            self.text = next(iter(QUERIES.values()))
        elif loaded.types or loaded.type is None:
            first, second = [show(EventType(kind)) for kind in (loaded.types * 2)[:2]] or ["EVENT", "EVENT"]
            self.text = FIRST_TEXT.replace("A AS", f"{first} AS").replace("B AS", f"{second} AS")
        self._proposed = self.text

    @property
    def key(self) -> str | None:
        """The column by which the query is partitioned, if it is a single one."""
        try:
            keys = self.single_query().tree.partition
        except CerflowError:
            return None
        return keys[0][0] if len(keys) == 1 and len(keys[0]) == 1 else None

    def partition(self, key: str | None) -> None:
        """Write another key, or none, into the text; raises what `cerflow.parse` raises, also for definitions."""
        query = self.query()
        if isinstance(query, Program):
            raise UnsupportedQueryError("the query has definitions")
        keys = () if key is None else ((key,),)
        text = show(replace(query.tree, partition=keys))
        self.text = _CLAUSE.sub(lambda found: "\n" if found.group() == " " else found.group(), text)

    @property
    def schema(self) -> Schema | None:
        """The columns of the sample, None without one."""
        return None if self.events is None else self.events.schema

    def query(self) -> Query | Program:
        """The query of the text; raises what `cerflow.parse` raises."""
        return read_query(self.text, self.language)

    def definitions(self) -> list[str]:
        """The names of the definitions of the text, if it can be read."""
        try:
            return [name for name in self.query().queries if name is not None]
        except CerflowError:
            return []

    def single_query(self) -> Query:
        """The query of the text, or of a text with definitions the chosen one."""
        queries = self.query().queries
        return queries.get(self.statement, queries[None])

    def remember(self) -> None:
        """Put the text at the beginning of the history."""
        self.history = [self.text, *(text for text in self.history if text != self.text)][: limits.STUDIO_HISTORY]

    @property
    def settings(self) -> dict[str, str]:
        """The query and the settings of a run, without data, as a link has them."""
        found = {"query": self.text, "language": self.language, "most": str(self.most), "seconds": f"{self.seconds:g}"}
        return found | ({} if self.statement is None else {"statement": self.statement})

    def follow(self, asked: Mapping[str, str]) -> None:
        """Take over what a link has; what is not a number keeps its value."""
        self.text, self.statement = asked["query"], asked.get("statement")
        self.language = "sremo" if asked.get("language") == "sremo" else "ceql"
        with suppress(ValueError):
            self.most = max(1, int(asked.get("most", self.most)))
            self.seconds = max(1.0, float(asked.get("seconds", self.seconds)))

    # -- while the text is written ---------------------------------------------------------------------------------

    def problems(self, text: str | None = None) -> list[Problem]:
        """The first error of the text or of another, or else of it for the columns of the sample; empty without one."""
        text = self.text if text is None else text
        try:
            query = read_query(text, self.language)
            if self.schema is not None:
                query.check(self.schema)
        except (QuerySyntaxError, QueryError, UnsupportedQueryError) as error:
            error.with_source(text)
            return [error]
        return []

    def doubts(self) -> list[Problem]:
        """Warnings about a text without error."""
        try:
            query = self.query()
            found: list[Problem] = [*query.warnings(self.schema)]
        except CerflowError:
            return []
        types = [] if self.events is None else self.events.types
        if 0 < len(types) < limits.TYPES_LOOKED_FOR and isinstance(query, Query):
            found += query.doubtful_types(types, "sample")
        return found

    def completions(self) -> dict[str, list[dict[str, str]]]:
        """The words that may be completed: see `completions`."""
        if self.events is None:
            return completions(self.text, [], pa.schema([]))
        return completions(self.text, self.events.types, self.events.table.schema)

    def transducer(self) -> Transducer:
        """The automaton of the text."""
        return compile_select(self.single_query().tree)

    # -- the sample ------------------------------------------------------------------------------------------------

    def loaded(self) -> LoadedEvents:
        """The sample; raises `UnsupportedQueryError` if there is none."""
        if self.events is None:
            raise UnsupportedQueryError("there are no events yet: open a file first")
        return self.events

    @property
    def looked_at(self) -> tuple[object, ...]:
        """The text, the sample and the statement, on which all answers depend."""
        return (self.text, self.events, self.statement)

    def read_events(
        self, first: int, size: int, where: tuple[str, str] | None = None
    ) -> tuple[Sequence[int], pa.Table]:
        """Events that the chosen query reads, from a position on: those of the sample, or of it and of the definitions.

        With ``where``, only those with a value, as text, in a column. Here and below, raises `StoppedError` if
        definitions have to read far and the check of the caller ends that.
        """
        if where is None:
            table = self._stretch(first, size)[1].table
            positions: Sequence[int] = range(first, first + len(table))
        else:
            table = self._read(None)[1].table
            same = pc.equal(table.column(where[0]).cast(pa.string()), where[1])
            found = pc.indices_nonzero(same.combine_chunks()).to_numpy()
            positions = found[found >= first][:size].tolist()
            table = table.take(positions)
        return positions, table.drop_columns(list(filter(is_nested, table.column_names)))

    def shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The values of an event as they stand in tables."""
        return cells(row, [self.loaded().time], self.loaded().time_unit)

    def own_labels(self, pairs: Pairs) -> str:
        """A complex event as text, with the types of events only where these have no other labels."""
        types = {*self.loaded().types}
        labelled = {position for label, position in pairs if label not in types}
        return shown_pairs(frozenset(pair for pair in pairs if pair[0] not in types or pair[1] not in labelled))

    def progress(self) -> str:
        """What is waited for, in words: how far the definitions have read the sample."""
        part = None if self._studied is None else self._studied[1]
        if part is None or not part.reading:
            return "Working …"
        first = "" if find_library() else " The first runs on a machine compile parts of the engine."
        return f"The definitions have read {part.reached:,} of {part.total:,} events …{first}"

    def _read(self, end: int | None) -> tuple[Query, StudiedEvents]:
        """The chosen query and what it reads, to be looked at one by one: the events before a position, or all (None).

        Definitions are recognised as far as needed; their matches are kept until the text or the sample changes.
        """
        events, query = self.loaded(), self.query()
        if not isinstance(query, Program):
            query.check(events.schema)
            schema = events.schema.reading(attributes_in(query.tree))
            return query, StudiedEvents(schema.completed(events.table.slice(0, end)), schema)
        of = self.statement if self.statement in query.definitions else None
        known = (self.text, id(events), of)
        if self._studied is None or self._studied[0] != known:
            self._studied = known, StudiedPart(query.queries, events.table, of, **events.roles)
        part = self._studied[1]
        try:
            table = part.first(sys.maxsize if end is None else end)
        except StoppedError:
            raise StoppedError(
                f"Stopped: the definitions have read {part.reached:,} of {part.total:,} events; "
                f"with theirs, that makes {part.found:,} events for the query."
            ) from None
        return part.query, StudiedEvents(table.slice(0, end), part.schema)

    def _stretch(self, first: int, size: int) -> tuple[Query, StudiedEvents]:
        query, sample = self._read(first + size)
        if first >= sample.end:
            raise UnsupportedQueryError(f"the query reads {sample.end:,} events, and has none at this position")
        return query, sample.stretch(first, sample.end)

    def trace(self, first: int, size: int) -> Trace:
        """The steps of the chosen query over a stretch of what it reads."""
        query, sample = self._stretch(first, size)
        return Trace(query.tree, sample)

    def why_not(self, chosen: list[int | tuple[str, int]]) -> WhyNot:
        """Why some events are not a match of the chosen query."""
        query, sample = self._read(None)
        return why_not(query.tree, sample, chosen)

    def draw_matches(self) -> None:
        """Make the page of the first listed matches of the last run."""
        text, loaded = self.ran
        assert self.outcome is not None
        assert loaded is not None
        query = read_query(text, self.language)
        # Definitions give a query events that the file has not.
        read = loaded.schema.completed(loaded.table.slice(0, self.outcome.events))
        events = None if isinstance(query, Program) else read
        keys = [] if isinstance(query, Program) else query.tree.partition
        stream = ViewedStream(events, loaded.schema.type, loaded.time, loaded.time_unit or "ms", keys or None)
        self.matches_page = page_of(self.outcome.table.slice(0, limits.STUDIO_DRAWN), stream, title=loaded.title)

    def other_query(self, text: str) -> Query:
        """Another query to compare with; raises what `cerflow.parse` raises."""
        other = read_query(text, self.language)
        if isinstance(other, Program):
            raise UnsupportedQueryError("the other query has definitions (DEFINE): write it without them")
        return other

    def written(self, form: str) -> bytes:
        """The matches of the last run in a format; raises `UnsupportedQueryError` if there are none."""
        if self.outcome is None or not self.outcome.table.num_rows:
            raise UnsupportedQueryError("there are no matches yet: run the query first")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"matches.{form}"
            self.write(str(path), form, self.outcome.table)
            return path.read_bytes()

    def compared(self, other: str) -> tuple[Verdict, Verdict, Verdict]:
        """Whether two formulas are equivalent, the first is contained in the second, and the other way round."""
        pair, steps = (self.single_query(), self.other_query(other)), limits.DECISION_STEPS // 20
        return (
            equivalent(*pair, schema=self.schema, steps=steps),
            contained(*pair, schema=self.schema, steps=steps),
            contained(*reversed(pair), schema=self.schema, steps=steps),
        )
