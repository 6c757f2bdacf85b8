"""The words of both languages: keywords, names and their quotes.

Parser, printer and error messages all take them from here, so that a name is quoted exactly when it has to be.
"""

from __future__ import annotations

import re

from cerflow.base.nested import parts_of
from cerflow.base.units import DURATION_UNITS
from cerflow.language.condition import AGGREGATES, FUNCTIONS, LONGER_FUNCTIONS, MATCH_NUMBER, SET_TESTS

#: Integers are those of 64 bits.
LARGEST_INTEGER = 2**63 - 1

#: Words that are names only in double quotes (or after a dot).
RESERVED = (
    "ALL", "AND", "ANY", "AS", "BETWEEN", "CONSUME", "EVENT", "FALSE", "FILTER", "FROM", "IN", "IS", "LAST", "LIKE",
    "LIMIT", "MAX", "NEXT", "NONE", "NOT", "NULL", "NXT", "OR", "PARTITION", "PROJECT", "REGEXP", "SELECT", "START",
    "STRICT", "TRUE", "UNLESS", "WHERE", "WITHIN", "WITHOUT",
)  # fmt: skip

#: Words that mean something only where no name can stand.
CONTEXTUAL = (
    "BY", "ELSE", "EMPTY", "END", "EPSILON", "FOLLOWED", "FOR", "INTO", "MARK", "RANGE", "THEN", "UNORDERED", "WHEN",
)  # fmt: skip

#: Names with a meaning in front of "(" in a condition; all others are registered predicates.
BUILT_IN = (*FUNCTIONS, *LONGER_FUNCTIONS, *AGGREGATES, *SET_TESTS, MATCH_NUMBER, "position", "prev", "time")

_OTHERS = f"the aggregates are {', '.join(AGGREGATES)}; a predicate of sets of your own can compute others"
#: Names of functions in other languages, with what to write here.
INSTEAD = {
    **dict.fromkeys(("isnan", "is_nan"), "NaN counts as null: write … IS NULL"),
    **dict.fromkeys(("isnull", "is_null"), "write … IS NULL"),
    **dict.fromkeys(("ifnull", "nvl"), "write coalesce(a, b)"),
    **dict.fromkeys(("len", "char_length"), "write length(…)"),
    **dict.fromkeys(("mean", "average"), "write avg(…)"),
    **dict.fromkeys(("median", "percentile", "quantile", "mode", "variance"), _OTHERS),
}

_WORD = r"[^\W\d]\w*"
_RESERVED = "|".join(RESERVED)
_NAME = rf"(?!(?i:{_RESERVED})\b){_WORD}"

# In a bracket a reserved word may be an attribute, where what follows shows that it is one.
_ATTRIBUTES = "|".join(w for w in RESERVED if w not in ("NOT", "TRUE", "FALSE", "NULL"))
_AFTER_ATTRIBUTE = r"[=<>!+*%)\],\/-]|(?:IN|IS|LIKE|REGEXP|BETWEEN|NOT|AND|OR|WHEN|THEN|ELSE|END)\b"

# White space and comments, as a lookahead passes over them.
_SKIPPED = r"(?:\s|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)*"
# Words that begin an expression of SREMO; in a list of registers they are names only in double quotes.
_OPERANDS = ("EMPTY", "EPSILON", "UNORDERED")

# With what must follow, so that it may be a name itself: a query, or the condition of an event kind.
_DEFINE_NAME = rf'DEFINE(?={_SKIPPED}(?:"(?:[^"]|"")*"|{_NAME}){_SKIPPED}AS\b'
_DEFINE = rf"{_DEFINE_NAME}{_SKIPPED}SELECT\b)"

_AFTER_CASE = rf"""WHEN\b|["'\d(]|(?:MAX|LAST){_SKIPPED}\(|(?:TRUE|FALSE|NULL)\b|(?!(?:THEN|ELSE|END)\b){_NAME}"""

_name = re.compile(_NAME)
_word = re.compile(_WORD)


def lexical_grammar() -> str:
    """The terminals that are made of word lists, in Lark's notation; the grammar files build on them."""
    terminals = {
        "NAME": f"/{_NAME}/",
        "WORD": f"/{_WORD}/",
        "EVENTS.2": r"/EVENTS?\b/i",
        "UNIT.2": "/(?:" + "|".join(f"{unit}?" for unit in DURATION_UNITS) + r")\b/i",
        "RESERVED_ATTRIBUTE.1": rf"/(?:{_ATTRIBUTES})\b(?={_SKIPPED}(?:{_AFTER_ATTRIBUTE}))/i",
        # Before a string or parenthesis only, so that they may be names themselves.
        "INTERVAL.3": rf"/INTERVAL(?={_SKIPPED}')/i",
        "AUTOMATON.3": rf"/AUTOMATON(?={_SKIPPED}')/i",
        "SREMO.3": rf"/SREMO(?={_SKIPPED}\()/i",
        # A statement ends where another one or nothing follows; elsewhere ";" is an operator.
        "STATEMENT_END.3": rf"/;(?={_SKIPPED}(?:\Z|SELECT\b|{_DEFINE_NAME})))/i",
        "DEFINE.3": f"/{_DEFINE}/i",
        "DEFINE_KIND.3": rf"/{_DEFINE_NAME}(?!{_SKIPPED}SELECT\b))/i",
        # In front of a condition or value only, so that they may be names themselves.
        "CASE.3": rf"/CASE\b(?={_SKIPPED}(?:{_AFTER_CASE}))/i",
        "DISTINCT.3": rf"/DISTINCT\b(?!{_SKIPPED}(?:[.,)\[=<>!+*%|]|\/(?!\*)))/i",
        # MAX and LAST are strategies and operators, and aggregates too.
        "FUNCTION_WORD.2": rf"/(?:MAX|LAST)(?={_SKIPPED}\()/i",
        "STRATEGY.3": r"/(?:ALL|ANY|NEXT|NXT|STRICT|(?:LAST|MAX)\b(?!\s*\())\b/i",
        # Where a label may stand instead.
        "STRATEGY_BY.3": rf'/BY\b(?={_SKIPPED}(?:"|{_NAME}))/i',
        # Before names and a colon only, so that it may be a name itself.
        "SOME.3": rf'/SOME\b(?={_SKIPPED}(?:"(?:[^"]|"")*"|{_NAME}){_SKIPPED}[,:])/i',
        # In ``any([c] INTO r, q, [d])`` the first comma stands between registers, the second between operands.
        "REGISTER_COMMA.3": rf'/,(?={_SKIPPED}(?:"|(?!(?:ANY|NEXT|{"|".join(_OPERANDS)})\b){_WORD}))/i',
    }
    terminals |= {f"{word}.2": rf"/{word}\b/i" for word in (*RESERVED, *CONTEXTUAL)}
    return "".join(f"{name}: {pattern}\n" for name, pattern in terminals.items())


def quote_name(name: str, *, always: bool = False) -> str:
    """The name as it stands in a text: in double quotes if it must be, or ``always``."""
    if not always and _name.fullmatch(name) and name.upper() not in ("CASE", "DISTINCT"):
        return name
    return '"' + name.replace('"', '""') + '"'


def quote_attribute(name: str) -> str:
    """The name of an attribute as it stands after a dot or in a list, where reserved words need no quotes."""
    return ".".join(part if _word.fullmatch(part) else quote_name(part, always=True) for part in parts_of(name))


def quote_register(name: str) -> str:
    """The name of a register as it stands after INTO."""
    return quote_name(name, always=name.upper() in _OPERANDS)


def quote_string(value: str) -> str:
    """The string as a literal in single quotes."""
    return "'" + value.replace("'", "''") + "'"
