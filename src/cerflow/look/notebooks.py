"""``%%cerflow`` and ``%cerflow``: matches a query with a table of the notebook or with files."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast, get_args

import pyarrow as pa
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic_arguments import MagicArgumentParser

from cerflow.api.programs.program import Program, read_query
from cerflow.api.query import Language, Query
from cerflow.api.stream_inputs import Input, Roles, Streams, streams
from cerflow.base import limits
from cerflow.base.errors import CerflowError, counted, nearest
from cerflow.base.event_tables import to_table
from cerflow.base.units import TimeUnit
from cerflow.cli.output.reporting import PhaseTimer, Progress, compile_kernels
from cerflow.engine.matches.matches import Matches
from cerflow.files.reading import read_events
from cerflow.files.sources import InputFormat, named_path
from cerflow.look.pictures.targets import shown_or_told
from cerflow.look.viewing.page import frame_of

#: The first word of a query on the line of ``%cerflow``.
_QUERY = re.compile(r"(?:^|\s)(?=(?:SELECT|DEFINE)\s)", re.IGNORECASE)


class Found:
    """A query with its matches: ``matches`` are all of them, though the first ``limit`` are shown."""

    def __init__(self, query: Query | Program, matches: Matches, limit: int, *, pictures: bool = True) -> None:
        self.query = query
        # The events are recognised here and once, while progress is shown; what follows reads what was found.
        self.matches = matches.held()
        self._table = self.matches.first_as_html(limit)
        self._rows = self.matches.rows()
        self._page: str | None = None
        if pictures and self.matches:
            with suppress(CerflowError):  # they have no positions or events
                self._page = self.matches.to_html(limit=limit)

    def __repr__(self) -> str:
        return f"<{counted(self._rows, 'match', 'matches')} of {self.query!r}>"

    def _repr_html_(self) -> str:
        if self._page is None:
            return self._table
        query = self.query
        drawn = shown_or_told(query.to_svg if isinstance(query, Program) else lambda: query.to_svg("boxes"))
        if len(self._page) > limits.NOTEBOOK_PICTURE:
            size = f"{len(self._page) / 1e6:.0f} MB"
            return f"{drawn}\n{self._table}\n<p>A picture of {size} is left out; show() of the matches shows it.</p>"
        return f"{drawn}\n{self._table}\n{frame_of(self._page, 480)}"


def add_magic(shell: InteractiveShell) -> None:
    """Give the shell of a notebook the magic command ``cerflow``."""

    def cerflow(line: str, cell: str | None = None) -> Found | None:
        return _run(shell, line, cell)

    cerflow.__doc__ = _arguments().format_help()
    shell.magics_manager.register_function(cerflow, magic_kind="line_cell", magic_name="cerflow")


def _arguments() -> MagicArgumentParser:
    parser = MagicArgumentParser(
        "%%cerflow",
        description="Match the query in the cell (or after the options of %cerflow) with events.",
        add_help=False,
    )
    add = parser.add_argument
    add(
        "table",
        nargs="*",
        help="variable with the events: an Arrow table, DataFrame, or list of dicts; NAME=VARIABLE … for FROM NAME",
    )
    add(
        "-i",
        "--input",
        action="append",
        metavar="[NAME=]PATH",
        help="file or directory of events, instead of a variable; several for one stream, or with names for FROM",
    )
    add("--input-format", choices=[*InputFormat], help="format of the input, if its name does not show it")
    add("--type-column", default="type", metavar="COLUMN", help="column with the type of each event (default: type)")
    add("--time-column", metavar="COLUMN", help="column with the time of each event")
    add("--time-unit", choices=get_args(TimeUnit), help="unit of times that are numbers (default: ms)")
    add("--sequence-column", metavar="COLUMN", help="column that orders events of equal time")
    add("--language", choices=get_args(Language), default="ceql", help="language of the query")
    add("--threads", type=int, default=1, help="slices of the stream that are recognised in parallel")
    add("--limit", type=int, default=20, help="matches that are shown (default: 20); all are counted")
    add("--to", metavar="NAME", help="variable that gets the matches")
    add("--no-picture", action="store_true", help="show only the table")
    return parser


def _run(shell: InteractiveShell, line: str, cell: str | None) -> Found | None:
    given = line
    if cell is None:
        place = _QUERY.search(line)
        given, cell = (line[: place.start()], line[place.start() :]) if place else (line, "")
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UsageError(f"%%cerflow: {error} in its options") from None
    options = _arguments().parse_args(words)
    if not cell.strip():
        raise UsageError("%%cerflow: there is no query in the cell, nor after the options of %cerflow")
    if bool(options.table) == bool(options.input):
        raise UsageError("%%cerflow: name the events, either a variable or files with --input PATH")
    if options.limit < 1:
        raise UsageError(f"%%cerflow: --limit must be at least 1, not {options.limit}")
    if options.to is not None and not options.to.isidentifier():
        raise UsageError(f"%%cerflow: --to needs the name of a variable, not {options.to!r}")
    try:
        with Progress() as show:
            query: Query | Program = read_query(cell.strip(), language=options.language)
            compile_kernels(PhaseTimer())
            events = _events(shell, options, show)
            matches = query.match(events.events, **events.roles, threads=options.threads)
            show.bar("recognising", len(events.events), matches.reached, " events")
            found = Found(query, matches, options.limit, pictures=not options.no_picture)
    except CerflowError as error:
        # The message says where and how to continue; a traceback would hide it.
        raise UsageError(str(error)) from None
    if options.to is not None:
        shell.user_ns[options.to] = found.matches
    return found


def _events(shell: InteractiveShell, options: Namespace, show: Progress) -> Streams[pa.Table]:
    """The events of variables or files, with the columns that have a role."""
    roles = {role: getattr(options, f"{role}_column") for role in ("type", "time", "sequence")}
    roles["time_unit"] = options.time_unit
    if options.input:
        show("reading")

    def read(paths: Sequence[str]) -> pa.Table:
        return read_events(paths, format=options.input_format, type=options.type_column, time=options.time_column)

    given = [named_path(text) for text in options.input or options.table]
    if all(name is None for name, _ in given):
        if options.table and len(given) > 1:
            raise UsageError("%%cerflow: several variables need the names of their streams: NAME=VARIABLE")
        table = read(options.input) if options.input else to_table(_variable(shell, options.table[0]))
        return Streams(table, cast(Roles, {role: name for role, name in roles.items() if name is not None}))
    if len({name for name, _ in given} - {None}) < len(given):
        what = "PATH" if options.input else "VARIABLE"
        raise UsageError(f"%%cerflow: each of several streams needs a name of its own: NAME={what}")
    tables = {str(name): read([at]) if options.input else _variable(shell, at) for name, at in given}
    return streams({name: Input(table) for name, table in tables.items()}, **roles)


def _variable(shell: InteractiveShell, name: str) -> Any:
    try:
        return shell.user_ns[name]
    except KeyError:
        near = nearest(name, shell.user_ns)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"%%cerflow: there is no variable {name}{hint}") from None
