"""The arrays of a scan before it reads anything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import numpy as np

from cerflow.base.array_types import IntRows, Ints, array_types
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.kernels.table import compute
from cerflow.engine.layout import PROGRAM
from cerflow.engine.opcodes import COLUMN, CONSTANT, KEEP, KEPT, NOT, SELECT
from cerflow.engine.scan import layout
from cerflow.engine.scan.decisions import Decisions
from cerflow.engine.scan.layout import ScanArrays
from cerflow.engine.scan.program.absence import Absence
from cerflow.engine.scan.program.compiler import ScanProgram
from cerflow.engine.scan.program.contiguous import Contiguity
from cerflow.engine.scan.program.effects import counted_states, empties_states
from cerflow.engine.scan.program.flow import Flow
from cerflow.engine.scan.program.joins import Joinable
from cerflow.engine.tables.transducer_tables import TransducerTables

#: Entries of `ScanArrays.fixes`.
_FIXES = 1 << 13


@cache
def no_arrays() -> ScanArrays:
    """Arrays without anything in them."""
    return ScanArrays(**{name: np.zeros((0,) * axes, dtype) for name, (dtype, axes) in array_types(ScanArrays).items()})


@cache
def no_words() -> SharedArrays:
    """The words for these."""
    shared = SharedArrays()
    shared.hold(no_arrays())
    return shared


def first_arrays(tables: TransducerTables, program: ScanProgram, texts: IntRows, decisions: Decisions) -> ScanArrays:
    """The arrays for a program of some tables; ``texts`` becomes `ScanArrays.texts`."""
    contiguity = None if isinstance(program.contiguity, str) else program.contiguity
    tests_of = np.zeros((len(tables.tests), 4), np.int64)
    for number, row in program.tests.items():
        tests_of[number] = row
    flow = None if isinstance(program.flow, str) else program.flow
    by_key = None if flow is None or contiguity is not None else flow.by_key
    join = None if contiguity is not None or isinstance(program.join, str) else program.join
    links = () if (related := contiguity or by_key or join) is None else related.links
    # The programs that run on many rows at once.
    spans = [row[2:] for row in program.tests.values() if row[layout.K_KIND] == layout.RUN]
    asked = [*links, *(() if join is None else join.links)]
    spans += [] if contiguity is None else [row[1:] for row in contiguity.computed]
    spans += [link[layout.L_READ : layout.L_STOP + 1] for link in asked if link[layout.L_OPERATOR] == PROGRAM]
    depth = max((_depth(program.code[start:stop]) for start, stop in spans), default=min(len(asked), 1))
    asks = by_key is not None or join is not None or (contiguity is not None and contiguity.related)
    block = layout.STRETCH if depth or asks else 0
    return no_arrays()._replace(
        **({} if flow is None else flow.leads.arrays),
        control=_control(tables, program),
        columns=layout.int_rows(program.columns, layout.COLUMN_WORDS),
        texts=texts,
        nodes=decisions.nodes,
        next=decisions.next,
        outcomes=decisions.outcomes,
        together=decisions.together,
        tests=tests_of,
        outputs=layout.int_rows(program.outputs, 7),
        code=layout.int_rows(program.code, 2).astype(np.int32),
        constants=np.array([*program.constants, 0], np.int64),
        stack=np.zeros(len(program.code) + 1, np.int64),
        fixes=np.zeros((_FIXES + len(program.outputs), 4), np.int64),
        chosen=np.zeros(layout.STRETCH, np.int64),
        at=np.zeros(layout.STRETCH, np.int64),
        measures=np.zeros(layout.STRETCH, np.int64),
        candidates=np.zeros((0, layout.CANDIDATE_WORDS), np.int32),
        members=np.zeros((1, sum(row[layout.O_TO] == layout.TO_KEYS for row in program.outputs)), np.int64),
        slots=np.zeros(1, np.int32),
        links=layout.int_rows(links, layout.LINK_WORDS),
        admits=np.array([] if contiguity is None else contiguity.admits, np.int64),
        numbers=np.zeros(block, np.int64),
        allowed=np.zeros(block, np.int64),
        rows=np.zeros(block, np.int64),
        partners=np.zeros((_reach(links, join), layout.STRETCH), np.int64),
        join_guards=np.array([] if join is None else join.guards, np.int64),
        join_keys=layout.int_rows([] if join is None else join.handed, 7),
        join_kills=np.array([] if join is None else join.kills, np.int64),
        wide=np.zeros((depth, block), np.int64),
        computing=layout.int_rows([] if contiguity is None else contiguity.computed, 3),
        sorting=layout.int_rows([] if contiguity is None else contiguity.sorting, 2),
        kept=np.zeros((max((1 + place for op, place in program.code if op == KEEP), default=0), block), np.int64),
        guards=np.zeros(layout.CARRIED + layout.BLOCK, np.uint8),
        runs=np.zeros((tables.transducer.states + 1, layout.RUNS_WORDS), np.int64),
        led=np.full(1 << layout.GUARDS, layout.UNKNOWN, np.int64),
        ends=np.zeros(layout.BLOCK, np.uint8),
        step_guards=np.array(_step_guards(contiguity, flow), np.int64),
        reach=layout.int_rows(
            program.absence.reach if isinstance(program.absence, Absence) else [] if flow is None else flow.reach, 7
        ),
        keyed=layout.int_rows([] if flow is None else flow.keyed, 7),
        decided=layout.int_rows([] if program.guards is None else program.guards.decided(program.tests), 3),
    )


def _reach(links: Sequence[Sequence[int]], join: Joinable | None) -> int:
    """How many events programs may read of matches that are joined, or of a key."""
    steps = 0 if join is None else len(join.guards)
    return max([steps, *(1 + link[layout.L_DISTANCE] for link in links)])


def _depth(code: Sequence[Sequence[int]]) -> int:
    """How many values the instructions of a program hold at once."""
    effects = [1 if op in (COLUMN, CONSTANT, KEPT) else -2 if op == SELECT else -1 if op < NOT else 0 for op, _ in code]
    return max(accumulate(effects))


def _control(tables: TransducerTables, program: ScanProgram) -> Ints:
    control = np.zeros(layout.CONTROLS, np.int64)
    control[layout.FOLLOWS] = isinstance(program.contiguity, str) and empties_states(tables)
    if control[layout.FOLLOWS]:
        control[layout.OPENED] = counted_states(tables, program.outputs)
    control[layout.KEYED] = sum(row[layout.O_TO] == layout.TO_KEYS for row in program.outputs)
    if isinstance(program.flow, Flow):
        control[layout.FORWARDS] = program.flow.forwards
    if len(program.code):
        control[layout.PROGRAMS] = compute.address
    return control


def _step_guards(contiguity: Contiguity | None, flow: Flow | None) -> Sequence[int]:
    if contiguity is not None:
        return contiguity.guards
    return () if flow is None else (flow.last,)
