"""The predicates that queries may call: what each is, its name, and the public function that registers them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeVar, overload

from cerflow.base.errors import ArgumentError, QueryError, nearest
from cerflow.language.condition import Aggregate, Function, PredicateCall, SetTest, Some
from cerflow.language.lexicon import BUILT_IN, RESERVED
from cerflow.language.node import Node, walk


class PredicateKind(StrEnum):
    """The events that a predicate is about."""

    SCALAR = "scalar"  # one event of each label, for every choice of them
    VECTORIZED = "vectorized"  # one event, asked about many events at once
    SET = "set"  # all events of a label together


class Form(StrEnum):
    """The form in which a function gets the values of many events."""

    VALUES = "values"  # event by event, as Python values
    NUMPY = "numpy"
    ARROW = "arrow"


@dataclass(frozen=True)
class Fold:
    """A function of a set of events that goes from event to event.

    ``init`` is the state before the first event, or a function that makes it; ``step(state, values…)`` returns the
    state after an event; ``accept(state)`` returns the answer.
    """

    init: Any
    step: Callable[..., Any]
    accept: Callable[[Any], Any]

    def __call__(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        """The answer for events with these values, in the order of their positions."""
        state = self.init() if callable(self.init) else self.init
        for row in rows:
            state = self.step(state, *row)
        return self.accept(state)


@dataclass(frozen=True, eq=False)
class Predicate:
    """A predicate of ``fewest`` to ``most`` arguments, which answers True, False, or None for unknown.

    ``form`` is the form in which a function of many events gets them; with ``compile`` Numba compiles a function of
    single values. A predicate equals only itself, even if another function has the same name.
    """

    name: str
    kind: PredicateKind
    function: Callable[..., Any]
    fewest: int
    most: int
    form: Form = Form.VALUES
    compile: bool = True

    @property
    def arity(self) -> str:
        """The number of arguments in words: ``2 arguments``, ``2 to 3 arguments``."""
        if self.fewest < self.most:
            return f"{self.fewest} to {self.most} arguments"
        return "1 argument" if self.most == 1 else f"{self.most} arguments"


_registered: dict[str, Predicate] = {}


def register_predicate(predicate: Predicate) -> None:
    """Register a predicate for queries; it replaces an earlier one with the same name."""
    _registered[predicate.name] = predicate


def unregister_predicate(name: str) -> None:
    """Remove a predicate; raises KeyError if there is none with that name.

    Recognisers that already run keep it.
    """
    del _registered[name]


def registered_predicates() -> tuple[Predicate, ...]:
    """All predicates that queries may call, by name."""
    return tuple(_registered[name] for name in sorted(_registered))


def find_predicate(name: str) -> Predicate | None:
    """The predicate registered under a name, or None."""
    return _registered.get(name)


def registered(name: str) -> Predicate:
    """The predicate registered under a name; raises `QueryError` if there is none."""
    found = _registered.get(name)
    if found is None:
        raise QueryError(f"predicate '{name}' is not registered", suggestion=nearest(name, _registered))
    return found


def predicates_in(tree: Node) -> tuple[Predicate, ...]:
    """The registered predicates that a tree calls, each once, in the order of the text."""
    names = dict.fromkeys(current.name for current in walk(tree) if isinstance(current, PredicateCall))
    return tuple(_registered[name] for name in names if name in _registered)


def calls_of_sets() -> frozenset[str]:
    """The names of predicates that are about all events of a label together."""
    return frozenset(name for name, predicate in _registered.items() if predicate.kind is PredicateKind.SET)


def is_about_set(current: Node) -> bool:
    """Whether a node is about several events of a label: an aggregate, SOME, prev, a test or a predicate of a set."""
    match current:
        case Aggregate() | SetTest() | Some() | Function(name="prev"):
            return True
        case PredicateCall(name):
            return name in _registered and _registered[name].kind is PredicateKind.SET
    return False


@contextmanager
def using(predicates: Iterable[Predicate]) -> Iterator[None]:
    """Within this context these predicates are registered too, and hide others with their names."""
    before = dict(_registered)
    for predicate in predicates:
        register_predicate(predicate)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


F = TypeVar("F", bound=Callable[..., Any])
#: Whether a function takes arrays: no (False), NumPy's, or Arrow's.
Arrays = bool | Literal["numpy", "arrow"]

_MISSING: Any = object()
_FORMS = {False: Form.VALUES, True: Form.NUMPY, "numpy": Form.NUMPY, "arrow": Form.ARROW}


@overload
def predicate(name: F, /) -> F: ...
@overload
def predicate(
    name: str | None = None,
    *,
    vectorized: Arrays = False,
    of_set: Arrays = False,
    arity: int | None = None,
    compile: bool = True,
) -> Callable[[F], F]: ...
@overload
def predicate(
    name: str, *, init: Any, step: Callable[..., Any], accept: Callable[[Any], bool | None], arity: int | None = None
) -> Predicate: ...
def predicate(
    name: Any = None,
    *,
    vectorized: Arrays = False,
    of_set: Arrays = False,
    arity: int | None = None,
    compile: bool = True,
    init: Any = _MISSING,
    step: Callable[..., Any] = _MISSING,
    accept: Callable[[Any], bool | None] = _MISSING,
) -> Any:
    """Register a function as a predicate that conditions may call: ``close(x.price, y.price, 3)``.

    A predicate of single values gets one value per argument, for every choice of one event from each label:

    >>> import cerflow
    >>> @cerflow.predicate
    ... def close(a, b):
    ...     return abs(a - b) < 0.5
    >>> query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER close(x.v, y.v)")
    >>> query.match([{"type": "A", "v": v} for v in (1.0, 3.0, 3.25)]).count()
    1

    Numba compiles it. A function that cannot be compiled (or gets strings, timestamps or whole events) runs as Python,
    with a `PerformanceWarning`; with ``compile=False`` it always does, without a warning. A bare name as an
    argument is a whole event, a read-only mapping of its attributes, as in ``near(x, y)``.

    With ``vectorized`` the function gets arrays of NumPy (``True`` or ``"numpy"``) or Arrow (``"arrow"``): the
    values of many events, in any order and without nulls. It returns an array of booleans.
    All arguments of a call must come from the same event (whole events as a `pyarrow.RecordBatch`, with nulls):

    >>> @cerflow.predicate("odd", vectorized=True)
    ... def is_odd(values):
    ...     return values % 2 == 1

    A predicate of sets (P2 §3) is about all events of a label together, in the order of their positions. With
    ``of_set`` the function gets arrays (as above) of their values and answers once. Each argument reads one label, and
    they may be different ones. With ``init``, ``step`` and ``accept`` it goes from event to event of one label:
    ``step(state, value, …)`` returns the next state, ``accept(state)`` the answer, and ``init`` is the first state, or
    a function that makes it:

    >>> spread = cerflow.predicate("spread", of_set=True)(lambda values: values.max() - values.min() > 10)
    >>> fewer = cerflow.predicate("fewer", of_set=True)(lambda some, others: some.size < others.size)
    >>> rises = cerflow.predicate(
    ...     "rises", init=0, step=lambda up, before, after: up + (after > before), accept=lambda up: up >= 3
    ... )

    Literals and other arguments without a label are plain values. Answers are True, False, or None (in arrays null) for
    unknown. If a value is null, the answer is unknown without a call; a set leaves such events out. Integers, floats,
    booleans and strings stay as they are, timestamps become `datetime.datetime` in UTC. A function must depend only on
    its arguments: the number of calls, and the events that they are for, are not guaranteed. An exception in it becomes
    a `PredicateError`.

    ``name`` is by default the name of the function. ``arity`` is the number of arguments, if it is not clear from the
    function. Returns the function itself, so it can be used as a decorator (for ``init``, ``step`` and ``accept``: the
    registered predicate). A second predicate with the same name replaces the first. Raises ValueError for a name that
    conditions cannot call, and for an unclear number of arguments.
    """
    fold = tuple(part for part in (init, step, accept) if part is not _MISSING)
    if fold:
        if len(fold) < 3 or vectorized or of_set:
            raise ArgumentError("a predicate of a set, event by event, takes init, step and accept, and no array form")
        return _register(PredicateKind.SET, name, Fold(init, step, accept), step, arity, 1)
    if vectorized and of_set:
        raise ArgumentError("a predicate is either vectorized or of a set")
    for form in (vectorized, of_set):
        if form not in _FORMS:
            raise ArgumentError(f"the form of arrays must be 'numpy' or 'arrow', not {form!r}")
    kind = PredicateKind.VECTORIZED if vectorized else PredicateKind.SET if of_set else PredicateKind.SCALAR

    def decorate(function: F) -> F:
        called = function.__name__ if name is None else name
        _register(kind, called, function, function, arity, 0, form=_FORMS[vectorized or of_set], compile=compile)
        return function

    if callable(name):
        function, name = name, None
        return decorate(function)
    return decorate


def _register(
    kind: PredicateKind,
    name: object,
    function: Callable[..., Any],
    described: Callable[..., Any],
    arity: int | None,
    besides: int,
    **further: Any,
) -> Predicate:
    """``described`` is the function whose parameters are counted; ``besides`` of them are not arguments of a call."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"{name!r} cannot be the name of a predicate: it is not an identifier")
    if name.upper() in RESERVED or name.lower() in BUILT_IN:
        raise ArgumentError(f"'{name}' cannot be the name of a predicate: it is a reserved word")
    if any(map(_answers_later, (function.step, function.accept) if isinstance(function, Fold) else (function,))):
        raise ArgumentError(f"predicate '{name}' must answer when it is called, so it cannot be async or have a yield")
    fewest, most = (arity, arity) if arity is not None else _arity(name, described, besides)
    if most < 1:
        raise ArgumentError(f"predicate '{name}' must take an argument")
    made = Predicate(name, kind, function, max(1, fewest), most, **further)
    register_predicate(made)
    return made


def _answers_later(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine or generator, which would count as true."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_one(function) for is_one in kinds)


def _arity(name: str, function: Callable[..., Any], besides: int) -> tuple[int, int]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ArgumentError(f"the number of arguments of predicate '{name}' is not known; give arity=…") from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = [p for p in parameters if p not in positional]
    if any(p.kind is p.VAR_POSITIONAL or (p.kind is p.KEYWORD_ONLY and p.default is p.empty) for p in others):
        raise ArgumentError(f"the number of arguments of predicate '{name}' is not clear; give arity=…")
    required = sum(p.default is p.empty for p in positional)
    return required - besides, len(positional) - besides
