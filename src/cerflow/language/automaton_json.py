"""Automata as JSON, and back: version 1.

::

    {"cerflow": "automaton", "version": 1, "model": "SRT",
     "states": [0, 1, "end"], "starts": [0], "finals": ["end"], "registers": ["r"],
     "transitions": [{"from": 0, "to": 1, "if": "v > 10", "labels": ["event"], "writes": ["r"]}, …]}

A state is a number, a name, ``{"tuple": […]}`` or ``{"set": […]}``. A condition is text as in ``x[…]``, where a name in
front of a dot is a register, or one of ``{"type": name, "stream": name}`` (one of them may be absent),
``{"and": [c, d]}``, ``{"or": [c, d]}``, ``{"not": c}`` and ``{"satisfied": c}`` (unknown counts as false). A transition
without "if" is an ε-transition. That of an RMA has ``"selection": [[parameter, register], …]``, where "~" is the event
read. Predicates stand in conditions by their names. ``"begins"`` is "anywhere" (the rule for RMA and SRT) or "first":
runs begin at any event or at the first one. ``"ends"`` is "marked" or "any" (the rule for UCEA): runs have to mark
their last event or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from cerflow.base.errors import CerflowError, QueryError, UnsupportedQueryError
from cerflow.language import automaton as a
from cerflow.language.condition import And, Condition, Not, Or
from cerflow.language.node import Node, walk

T = TypeVar("T")

_VERSION = 1
_SETS = ("states", "starts", "finals")
#: Reads the text of a condition with bare attributes, and the text of a tree.
_Reader = Callable[[str], Condition]
_Writer = Callable[[Node], str]


def automaton_to_json(automaton: a.AutomatonFormula, write: _Writer) -> str:
    """The text that `automaton_from_json` reads; ``write`` writes conditions.

    Raises `UnsupportedQueryError` for conditions that are nested more deeply than JSON can be.
    """
    parts: dict[str, Any] = {"cerflow": "automaton", "version": _VERSION, "model": str(automaton.model)}
    parts |= {name: _state(getattr(automaton, name))["set"] for name in _SETS}
    parts["registers"] = list(automaton.registers)
    if automaton.anywhere != automaton.model.anywhere:
        parts["begins"] = "anywhere" if automaton.anywhere else "first"
    if automaton.ends_marked != automaton.model.ends_marked:
        parts["ends"] = "marked" if automaton.ends_marked else "any"
    try:
        parts["transitions"] = [_step(step, write) for step in automaton.steps]
        return json.dumps(parts, ensure_ascii=False)
    except RecursionError:
        raise UnsupportedQueryError("a condition of the automaton is nested too deeply for JSON") from None


def automaton_from_json(text: str, read: _Reader) -> a.AutomatonFormula:
    """The automaton in a text; ``read`` reads conditions. Raises `QueryError`, which names the part at fault."""
    try:
        return _automaton(_expected(dict, json.loads(text), "the text"), read)
    except RecursionError:
        raise QueryError("the JSON of the automaton is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise QueryError(f"the automaton is not JSON: {error.msg} at character {error.pos}") from None


def _state(state: a.State) -> Any:
    match state:
        case int() | str():
            return state
        case frozenset():
            return {"set": [_state(part) for part in a.sorted_states(state)]}
    return {"tuple": [_state(part) for part in state]}


def _step(step: a.AutomatonStep, write: _Writer) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "from": _state(step.source),
        "to": _state(step.target),
        "if": None if step.condition is None else _condition(step.condition, write),
        "labels": sorted(step.output),
        "writes": sorted(step.writes),
        "selection": [list(pair) for pair in step.selection],
    }
    return {name: part for name, part in parts.items() if part not in (None, [])}


def _condition(condition: Condition, write: _Writer) -> Any:
    if not any(isinstance(current, a.TypeTest | a.StreamTest | a.Satisfied) for current in walk(condition)):
        return write(condition)
    match condition:
        case a.TypeTest(name, stream):
            return {"type": name} if stream is None else {"type": name, "stream": stream}
        case a.StreamTest(stream):
            return {"stream": stream}
        case And(left, right) | Or(left, right):
            key = "and" if isinstance(condition, And) else "or"
            return {key: [_condition(left, write), _condition(right, write)]}
        case Not(operand) | a.Satisfied(operand):
            return {"not" if isinstance(condition, Not) else "satisfied": _condition(operand, write)}
    raise UnsupportedQueryError(f"there is no JSON form of the condition {write(condition)}")


# -- reading


def _automaton(parts: dict[str, Any], read: _Reader) -> a.AutomatonFormula:
    if parts.get("cerflow") != "automaton":
        raise QueryError('this is not an automaton of cerflow: "cerflow": "automaton" is missing')
    if parts.get("version") != _VERSION:
        raise QueryError(f"version {parts.get('version')!r} of an automaton cannot be read here, only {_VERSION}")
    try:
        model = a.Model(str(parts.get("model")))
    except ValueError:
        raise QueryError(f"model must be one of {', '.join(a.Model)}, not {parts.get('model')!r}") from None
    anywhere = _choice(parts, "begins", "first", "anywhere", model.anywhere)
    ends_marked = _choice(parts, "ends", "any", "marked", model.ends_marked)
    states, starts, finals = (frozenset(_each(parts.get(name), name, _read_state)) for name in _SETS)
    registers = tuple(_each(parts.get("registers", []), "registers", _name))
    steps = []
    for k, step in enumerate(_expected(list, parts.get("transitions"), "transitions")):
        where = f"transitions[{k}]"
        steps.append(_read_step(_expected(dict, step, where), where, states, registers, read))
    for state in a.sorted_states((starts | finals) - states):
        raise QueryError(f"the start or final state {a.show_state(state)} is not among the states")
    return a.AutomatonFormula(model, states, starts, finals, registers, tuple(steps), anywhere, ends_marked)


def _choice(parts: dict[str, Any], key: str, no: str, yes: str, usual: bool) -> bool:
    """Whether a part is the second of two words; ``usual`` where it is absent."""
    given = parts.get(key, yes if usual else no)
    if given not in (no, yes):
        raise QueryError(f"{key} must be '{no}' or '{yes}', not {given!r}")
    return bool(given == yes)


def _read_step(
    parts: dict[str, Any], where: str, states: frozenset[a.State], registers: tuple[str, ...], read: _Reader
) -> a.AutomatonStep:
    for key in parts.keys() - {"from", "to", "if", "labels", "writes", "selection"}:
        raise QueryError(f"{where}: {key!r} is not known")
    step = a.AutomatonStep(
        _read_state(parts.get("from"), f"{where}.from"),
        _read_state(parts.get("to"), f"{where}.to"),
        _read_condition(parts["if"], f"{where}.if", read) if "if" in parts else None,
        frozenset(_each(parts.get("labels", []), f"{where}.labels", _name)),
        frozenset(_each(parts.get("writes", []), f"{where}.writes", _name)),
        tuple(_each(parts.get("selection", []), f"{where}.selection", _pair)),
    )
    for state in (step.source, step.target):
        if state not in states:
            raise QueryError(f"{where}: {a.show_state(state)} is not among the states")
    if step.condition is None and (step.output or step.writes or step.selection):
        raise QueryError(f'{where}: without "if" it reads no event, so it has no labels, writes or selection')
    for register in (*sorted(step.writes), *(register for _, register in step.selection)):
        if register not in (*registers, a.HEAD):
            raise QueryError(f"{where}: there is no register {register}")
    return step


def _read_condition(given: Any, where: str, read: _Reader) -> Condition:
    match given:
        case str():
            try:
                return read(given)
            except CerflowError as error:
                raise QueryError(f"{where}: {error}") from None
        case {"type": str(name), "stream": str(stream), **rest} if not rest:
            return a.TypeTest(_name(name, where), _name(stream, where))
        case {"type": str(name), **rest} if not rest:
            return a.TypeTest(_name(name, where))
        case {"stream": str(stream), **rest} if not rest:
            return a.StreamTest(_name(stream, where))
        case {"and": [left, right], **rest} | {"or": [left, right], **rest} if not rest:
            join = And if "and" in given else Or
            return join(_read_condition(left, where, read), _read_condition(right, where, read))
        case {"not": operand, **rest} | {"satisfied": operand, **rest} if not rest:
            return (Not if "not" in given else a.Satisfied)(_read_condition(operand, where, read))
    raise QueryError(f"{where}: {json.dumps(given)[:60]} is not a condition")


def _read_state(given: Any, where: str) -> a.State:
    match given:
        case bool():
            pass
        case int() | str():
            return given
        case {"tuple": [*parts], **rest} if not rest:
            return tuple(_read_state(part, where) for part in parts)
        case {"set": [*parts], **rest} if not rest:
            return frozenset(_read_state(part, where) for part in parts)
    raise QueryError(f"{where}: {json.dumps(given)[:60]} is not a state")


def _name(given: Any, where: str) -> str:
    # Names that begin so are those of the engine.
    if not isinstance(given, str) or not given or given.startswith("\0"):
        raise QueryError(f"{where}: {json.dumps(given)[:60]} is not a name")
    return given


def _pair(given: Any, where: str) -> tuple[str, str]:
    names = _each(given, where, _name)
    if len(names) != 2:
        raise QueryError(f"{where}: a parameter and its register are expected, not {json.dumps(given)[:60]}")
    return names[0], names[1]


def _each(given: Any, where: str, read: Callable[[Any, str], T]) -> list[T]:
    return [read(one, where) for one in _expected(list, given, where)]


def _expected(kind: type[T], given: Any, where: str) -> T:
    if not isinstance(given, kind):
        raise QueryError(f"{where}: {'a list' if kind is list else 'an object'} is expected")
    return given
