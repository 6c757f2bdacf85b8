"""Compile the kernels before they are needed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from cerflow import limits
from cerflow.engine import layout
from cerflow.engine.kernel_cache import compile_once, is_complete, kernels_folder
from cerflow.engine.kernels.scan.check import all_usable
from cerflow.engine.kernels.scan.contiguous import find_rows
from cerflow.engine.kernels.scan.looking_ahead import look_ahead
from cerflow.engine.kernels.scan.programs import compute
from cerflow.engine.kernels.scan.scan import scan
from cerflow.engine.kernels.state.lists import enter
from cerflow.engine.kernels.step.advance import advance
from cerflow.engine.kernels.step.bytecode import call_predicate
from cerflow.engine.kernels.step.choose import choose, let_go, settle
from cerflow.engine.kernels.step.sets import group_by_labels
from cerflow.engine.kernels.step.units import prepare_all
from cerflow.engine.matches.strategy_parts import prepare_choice
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.recognizer import Recognizer
from cerflow.engine.recognize.set_recognizer import SetRecognizer
from cerflow.engine.results.taking import taken_together
from cerflow.language.parser import parse_query
from cerflow.schema import Schema
from cerflow.values.arrow_columns import array_of_numbers, array_of_texts

__all__ = ["ensure_compiled", "help_compile", "kernels_are_compiled", "load_kernels", "warm_up"]


#: Configurations that outgrow their first tables, collections of values that have to be cleaned up, no gaps.
_PLAIN = ("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v", "SELECT * WHERE A : B")
_QUERIES = (
    *_PLAIN,
    "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.v != y.v WITHIN 6 EVENTS",
    "SELECT LAST * WHERE A ; B WITHIN 6 EVENTS",
    "SELECT MAX * WHERE A+ ; B WITHIN 6 EVENTS",
)
_EVENTS = 200
#: What a second process compiles in this order, and the first one in the other when it has done the rest.
_OTHERS: tuple[Callable[[], object], ...] = (
    *(partial(kernel.load, 0, 0, 0) for kernel in (scan, all_usable, find_rows, look_ahead)),
    partial(prepare_choice, layout.LARGEST),
    partial(prepare_all, choose, settle, let_go),
    partial(prepare_choice, layout.LATEST),
    partial(prepare_all, enter),
    partial(prepare_all, compute),
)
_HELP = "import sys; from cerflow.engine.recognize.warmup import help_compile; help_compile(sys.argv[1])"


def kernels_are_compiled() -> bool:
    """Whether all kernels are on disk already, for this version and this processor."""
    return is_complete()


@cache
def ensure_compiled() -> None:
    """Compile all kernels unless they are on disk; unlike `warm_up` load nothing if they are.

    It is meant for short processes, such as the tasks of a cluster, which load only the kernels they need. Where no
    cache can be written, it does nothing, and they compile the kernels they need.
    """
    if kernels_folder() is not None and not kernels_are_compiled():
        warm_up()


@cache
def warm_up() -> None:
    """Compile all kernels that recognise and unfold, or load them from the cache on disk if they are there.

    Two processes compile them, once per machine; others that start at the same time wait. The cache is beside the
    package if that can be written to, else in the user's cache directory, else in one for temporary files. The
    environment variable ``CERFLOW_CACHE_DIR`` names another place.
    """
    if not kernels_are_compiled():
        compile_once(_compile)
    _use()
    _use_rest()
    prepare_all()


@cache
def load_kernels() -> None:
    """Load the kernels that every query needs, so that the first query is no slower; `warm_up` loads all kernels."""
    _use(_QUERIES[:1])


def _compile() -> None:
    logging.getLogger("cerflow").info("compiling the engine for this machine; this happens once")
    with TemporaryDirectory() as taken, _help(taken):
        # The largest kernel takes as long as the scan and what belongs to it, which the helper does first.
        advance.load(0, 0, 0)
        prepare_all(call_predicate, group_by_labels)
        _use(_PLAIN)
        _use_rest()
        _prepare(reversed(list(enumerate(_OTHERS))), taken)
    _use()
    prepare_all()


def help_compile(taken: str) -> None:
    """Compile or load the kernels that the second process compiles; a folder holds what either has begun."""
    _prepare(enumerate(_OTHERS), taken)


def _prepare(numbered: Iterable[tuple[int, Callable[[], object]]], taken: str) -> None:
    for number, prepare in numbered:
        with suppress(FileExistsError):
            Path(taken, str(number)).touch(exist_ok=False)
            prepare()


@contextmanager
def _help(taken: str) -> Iterator[None]:
    """Compile kernels in a second process while the body runs; the caller compiles afterwards all that it leaves."""
    # The same modules as here: -P keeps the working directory out unless it is on the path of this process.
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    command = [sys.executable or "python", "-P", "-c", _HELP, taken]
    try:
        helper = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
    except OSError:
        yield
        return
    try:
        yield
    except BaseException:
        # The compilation that it helps has failed.
        helper.kill()
        raise
    finally:
        helper.wait()


def _use(queries: tuple[str, ...] = _QUERIES) -> None:
    events = _events()
    for text in queries:
        query = parse_query(text)
        recognizer = Recognizer(query, Schema(events.schema))
        matches = recognizer.push(events)
        matches.to_arrow()
        matches.count()
        Recognizer.restore(query, recognizer.snapshot())


def _use_rest() -> None:
    """Use kernels that only large results and sets of queries need."""
    # Take so many texts and numbers as results with many matches do.
    columns = [array_of_texts(["A"]), array_of_numbers(np.zeros(1))]
    taken_together(columns, np.zeros(limits.GATHERED_ROWS, np.int32))
    events = _events()
    schema = Schema(events.schema)
    # The number of matches has more than 64 bits.
    Recognizer(parse_query("SELECT * WHERE A+ ; B"), schema).push(events).count()
    plans = {text: Plan(parse_query(text), schema) for text in _QUERIES[:3:2]}
    SetRecognizer(plans, schema, "fail").push(events)


def _events() -> pa.Table:
    types, values = array_of_texts(["A", "B"] * _EVENTS), array_of_numbers(np.arange(2 * _EVENTS))
    return pa.table({"type": types, "v": values})
