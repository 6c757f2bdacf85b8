"""The public function that registers predicates."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from cerflow.base.errors import ArgumentError
from cerflow.language.lexicon import BUILT_IN, RESERVED
from cerflow.language.predicates.registry import Fold, Form, Predicate, PredicateKind, register_predicate

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
    fewest, most = (arity, arity) if arity is not None else _arity(name, described, besides)
    if most < 1:
        raise ArgumentError(f"predicate '{name}' must take an argument")
    made = Predicate(name, kind, function, max(1, fewest), most, **further)
    register_predicate(made)
    return made


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
