"""Messages on texts that are not in the language: the token found, and the tokens that are possible there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any

from lark import Lark, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from cerflow.base.errors import QuerySyntaxError, Span, nearest
from cerflow.base.units import DURATION_UNITS
from cerflow.language.lexicon import CONTEXTUAL, RESERVED

_VALUE = {"NAME", "QUOTED", "NUMBER", "STRING", "MINUS", "TRUE", "FALSE", "NULL", "LPAR"}
_SHORT = ("CASE", "DISTINCT", "RESERVED_ATTRIBUTE", "FUNCTION_WORD", "REGISTER_COMMA", "STATEMENT_END", "DEFINE_KIND")
# Sets of terminals that have one name for people; tried in this order.
_GROUPS: tuple[tuple[set[str], str], ...] = (
    (
        {"NAME", "QUOTED", "LPAR", "EVENT", "NOT", "START", "STRICT", "NEXT", "NXT", "LAST", "MAX", "PROJECT"}
        | {"ANY", "AUTOMATON", "SREMO"},
        "a formula",
    ),
    (_VALUE | {"NOT"}, "a condition"),
    (_VALUE, "a value"),
    ({"LSQB", "LPAR", "BANG", "ANY", "NEXT", "UNORDERED", "EPSILON", "EMPTY"}, "an expression"),
    ({"NAME", "QUOTED"}, "a name"),
    ({"WORD", "QUOTED"}, "an attribute"),
    ({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "BARS"}, "an arithmetic operator"),
    ({"COMPARE", "MORETHAN"}, "a comparison"),
    ({"NUMBER"}, "a number"),
    ({"STRING"}, "a string"),
    ({"STRATEGY"}, "a strategy"),
    ({"UNIT"}, "a unit of time"),
)
_TOKEN = re.compile(r"\w+|<=|>=|<>|!=|==|&&|\|\||->|//|::|:\+|\.\.|.", re.DOTALL)
_CLOSED = {
    "'": (
        re.compile(r"'(?:[^']|'')*'(?!')"),
        "this string is not closed",
        "a quote inside a string is written twice: ''",
    ),
    '"': (re.compile(r'"(?:[^"]|"")*"(?!")'), "this quoted name is not closed", 'a quote inside is written twice: ""'),
    "/*": (re.compile(r"/\*.*?\*/", re.DOTALL), "this comment is not closed", "comments end with */"),
}
_COMPARED = re.compile(r"[<>=!]=?|<>|LIKE|REGEXP|BETWEEN|IN|IS|NOT", re.IGNORECASE)
_SYMBOLS = set("()[]{}<>=!+-*/%.,;:|&?")

# Notations of other pattern languages, with what to write here instead.
_CONDITIONS = "conditions come after FILTER: WHERE (A AS x ; B AS y) FILTER x.v > 1 AND y.v > x.v"
_SREMO = "an expression of SREMO is written in parentheses: SELECT * WHERE SREMO([type = 'A'] MARK)"

#: Anywhere.
_ANYWHERE = {
    "==": "equality is written with one =",
    "&&": "write AND",
    "::": "values have the types of their columns; cast the column before",
    "||": "write OR",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write !=",
    **dict.fromkeys(("‘", "’", "“", "”", "`"), "strings are written in straight single quotes: 'abc'"),
    **dict.fromkeys(("#", "//"), "comments are -- to the end of the line, or /* … */"),
    **dict.fromkeys(
        ("MATCH_RECOGNIZE", "DEFINE", "MEASURES", "PATTERN"),
        "for the PATTERN (A B+ C) DEFINE … of MATCH_RECOGNIZE write SELECT * WHERE (A ; B+ ; C) FILTER …",
    ),
}
#: After a formula, where an operator or a clause could stand.
_BEHIND_FORMULA = {
    **dict.fromkeys(
        ("->", "→", "=>", ",", "..", "THEN", "FOLLOWED", "FOLLOWEDBY", "FOLLOWS", "BEFORE", "NEXT", "SEQ", "("),
        "a sequence is written A ; B (B some time after A) or A : B (B directly after A)",
    ),
    **dict.fromkeys(("^", "TIMES"), "three are written A{3}, two to four A{2,4}"),
    "*": "none or more are written {0,}: A ; B{0,} ; C",
    **dict.fromkeys(("-", "/"), 'a type that is not a plain name is written in double quotes: "a-b"'),
    "&": "A ALL B has both, in any order; A AND B is for events that both formulas match",
    "|": "alternatives are written A OR B",
    **dict.fromkeys(("WHERE", "HAVING", "IF", "WHEN", "ON", "."), _CONDITIONS),
    **dict.fromkeys(
        ("UNTIL", "EXCEPT", "BUT"), "what must not happen in between is written A ; C WITHOUT B, or UNLESS B"
    ),
}
#: After a complete condition.
_BEHIND_CONDITION = {
    ",": "conditions are joined by AND",
    "&": "write AND",
    "|": "write OR",
    "XOR": "write (P AND NOT Q) OR (NOT P AND Q)",
}
#: Clauses of SQL, where another clause could stand.
_FOREIGN_CLAUSES = {
    "ORDER": "matches come in the order of their detection; sort the result",
    "GROUP": "the stream is divided by PARTITION BY; matches are aggregated by Matches.aggregate",
    "HAVING": _CONDITIONS,
}
_SHORT_UNITS = {
    "MS": "MILLISECONDS",
    **dict.fromkeys(("S", "SEC", "SECS"), "SECONDS"),
    **dict.fromkeys(("M", "MIN", "MINS"), "MINUTES"),
    **dict.fromkeys(("H", "HR", "HRS"), "HOURS"),
    "D": "DAYS",
}
#: Shorter units, with the powers of ten by which they are.
_FINER_UNITS = {
    **dict.fromkeys(("MICROSECOND", "MICROSECONDS", "MICROS", "US", "µs".upper()), 3),
    **dict.fromkeys(("NANOSECOND", "NANOSECONDS", "NANOS", "NS"), 6),
}
#: A definition without AS, up to what stands in its place.
_NO_AS = re.compile(r'DEFINE\s+("(?:[^"]|"")*"|[^\W\d]\w*)\s+(?!AS\b)(\w+|\S)', re.IGNORECASE)
_WINDOW = "a window is 500 EVENTS, 500 SECONDS (or another unit of time), or 500 [attribute]"
_DEADLINE = "the duration without such an event comes after FOR: A NOT FOLLOWED BY B FOR 5 MINUTES"
#: What ends with the token found, whatever its case, and what to write instead.
_ENDINGS = {
    r"\bSELECT\s+(?:TOP|FIRST)\s+[\d*][\s\d*]*\S*": "write LIMIT 3 at the end, or SELECT ANY * or SELECT NEXT *",
    r"\bSELECT\s+DISTINCT\s[\s*]*\S+": "there is no DISTINCT: every match is reported once",
    r"\bCOUNT\s*\(\s*\*": "count takes a label: WHERE A+ AS x FILTER count(x) > 3",
    r"\b(?:LIKE|REGEXP)\s+[^\s']+": "a pattern is a text in single quotes, as in LIKE 'a%'; = compares two values",
    r"\bLIMIT\s+\d+\s+(?:PER|BY|EACH|FOR)": "LIMIT counts at each event; take one of each key from the result",
    r"\bNOT\s+PRECEDED": "B with no A before it is B UNLESS A, and with no A since a C it is (C ; B) WITHOUT A",
    r"\bIS\s+(?:TRUE|FALSE)": "truth values are compared by =, as in x.ok = TRUE",
    r"\bIS\s+NOT\s+(?:TRUE|FALSE)": "write x.ok = FALSE, and OR x.ok IS NULL where null counts, too",
    r"\bILIKE": "write lower(x.s) LIKE 'abc%' where case does not matter",
    r"\bCAST\s*\([^()]*\bAS": "values have the types of their columns; cast the column before",
    r"\bPARTITION\s+BY\s[^()]*\(": "keys are attributes; add a column with what the function gives, and name it here",
    r"\bWHERE[\s(]+\w+\s*(?:=|!=|<>|<|<=|>=|LIKE|BETWEEN|IS)": (
        "after WHERE come types of events, conditions after FILTER: WHERE EVENT AS x FILTER x.v = 1"
    ),
    r"\b(?:CONTAINS|STARTS|STARTSWITH|ENDS|ENDSWITH)": "parts of texts are found by LIKE, as in x.s LIKE '%abc%'",
    r"\bEXTRACT\s*\(\s*\w+\s+FROM": "parts of times are functions, as in hour(x.at)",
    r"\b(?:TIMESTAMP|DATETIME|DATE)\s*'": "moments are written as texts, as in x.at > '2024-03-15T10:00'",
    r"\d\s*(?:WEEK|MONTH|YEAR)S?": "the longest unit is DAYS: a week is 7 DAYS",
}

#: Groups of terminals that have one name in messages if this many of them could stand there.
_OPERATORS = {
    "':'", "'['", "'>'", "'+'", "';'", "':+'", "'?'", "'{'", "':{'",
    "ALL", "AND", "AS", "FILTER", "IN", "NOT", "OR", "UNLESS", "WITHOUT",
}  # fmt: skip
_CLAUSES = {"CONSUME", "LIMIT", "PARTITION", "WITHIN"}
_TESTS = {"an arithmetic operator", "a comparison", "AND", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OR", "REGEXP"}
_FEW = ((_OPERATORS, "an operator", 8), (_TESTS, "an operator", 3), (_CLAUSES, "a clause", 3))


def explain_syntax(error: UnexpectedInput, text: str, lark: Lark, rule: str) -> QuerySyntaxError:
    """The error that ``lark`` raised on the text, read from ``rule``, in words: place, expected, nearest keyword."""
    before = _before(error, text, lark, rule)
    # The terminals that can really come next, those after reductions among them.
    accepted = before.accepts()
    names = _readable(accepted, lark)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        if len(before.parser_state.state_stack) == 1:
            reason, place = f"the text is empty, expected {_listed(names)}", Span(len(text), len(text))
        else:
            end = len(text) if error.token.end_pos is None else error.token.end_pos
            reason, place = f"the text ends too early, expected {_listed(_few(names))}", Span(end, end + 1)
        hint = _WINDOW if re.search(r"\bWITHIN[\s\d.]*$", text, re.IGNORECASE) else None
        if text.rstrip().endswith(";"):
            hint = "a query ends without a semicolon, which stands between two formulas: A ; B"
        return QuerySyntaxError(reason, span=place, hint=_DEADLINE if "FOR" in accepted else hint, expected=names)
    start = error.pos_in_stream
    assert start is not None
    for quote, (closed, reason, hint) in _CLOSED.items():
        if text.startswith(quote, start) and not closed.match(text, start):
            return QuerySyntaxError(reason, span=Span(start, len(text)), hint=hint)
    match = _TOKEN.match(text, start)
    assert match is not None
    found = match.group()
    if text[max(start - 1, 0) : start + 1] == "==":
        found, start = "==", start - 1
    span = Span(start, start + len(found))
    unnamed = _NO_AS.match(text, start) if "SELECT" in accepted else None
    if unnamed:
        reason, expected = f"AS is missing before '{unnamed[2]}'", ("AS",)
        hint = f"a definition is written DEFINE {unnamed[1]} AS SELECT …, or DEFINE {unnamed[1]} AS condition"
        return QuerySyntaxError(reason, span=Span(*unnamed.span(2)), hint=hint, expected=expected)
    told = _hint_for(found, text[:start], accepted, names)
    if found[0] not in _SYMBOLS and found[0] not in "'\"" and not (found[0].isalnum() or found[0] == "_"):
        return QuerySyntaxError(f"unexpected character {found[0]!r}", span=span, hint=told, expected=names)
    shown = "string" if found[0] == "'" else "quoted name" if found[0] == '"' else f"'{found}'"
    reason = f"unexpected {shown}, expected {_listed(_few(names))}"
    if list(names) == ["'->'"] and _COMPARED.fullmatch(found):
        reason = "a condition in brackets stands only after FILTER"
    return QuerySyntaxError(reason, span=span, hint=told, expected=names)


def _before(error: UnexpectedInput, text: str, lark: Lark, rule: str) -> Any:
    """The automaton in front of the token that did not fit.

    The state in the error is a later one: looking for a place for the token, the automaton has already closed what
    was open, and much of what could have stood there no longer can.
    """
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    again = lark.parse_interactive(text, start=rule)
    lexer: Any = again.lexer_thread
    with contextlib.suppress(UnexpectedInput):
        for token in lexer.lex(again.parser_state):
            if not ended and token.start_pos >= error.pos_in_stream:
                break
            again.feed_token(token)
    return again


def _readable(accepted: set[str], lark: Lark) -> tuple[str, ...]:
    left = accepted.difference(_SHORT, {"$END"})
    end = ["the end"] if "$END" in accepted else []
    names = []
    for group, name in _GROUPS:
        if group <= left:
            names.append(name)
            left -= group
    signs, words = [], []
    for terminal in sorted(left):
        if terminal in ("DEFINE", "EVENTS") or terminal in RESERVED or terminal in CONTEXTUAL:
            words.append(terminal)
        else:
            pattern = lark.get_terminal(terminal).pattern
            signs.append(f"'{pattern.value}'" if isinstance(pattern, PatternStr) else terminal.lower())
    return (*names, *signs, *words, *end)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _few(names: Collection[str]) -> tuple[str, ...]:
    """The expected terminals, in few names: operators and clauses are not listed one by one."""
    left = list(names)
    found: list[str] = []
    for group, name, least in _FEW:
        if len(group.intersection(left)) >= least:
            found.append(name)
            # After a condition there may be another FILTER, which is not a clause of its own.
            left = [each for each in left if each not in group and (name != "a clause" or each != "FILTER")]
    return (*dict.fromkeys(found), *left)


def _hint_for(found: str, before: str, accepted: Collection[str], names: Collection[str]) -> str | None:
    """A hint for a token that does not fit after some text; ``accepted`` are terminals that could stand there."""
    word = found.upper()
    if word == "DEFINE" and "SELECT" in accepted:
        return (
            "a definition is written DEFINE name AS SELECT … ;"
            if "DEFINE" in accepted
            else "cerflow.parse_program reads definitions and the query after them"
        )
    if word == "SELECT" and list(names) == ["the end"]:
        return "only the last statement is a query, all others are definitions: DEFINE name AS SELECT …"
    if word in _ANYWHERE:
        return _ANYWHERE[word]
    if "SELECT" in accepted and "a formula" not in names:
        return _SREMO if word == "[" else "a query begins with SELECT: SELECT * WHERE A ; B"
    if re.search(r"\bSREMO\s*\[\s*$", before, re.IGNORECASE):
        return _SREMO
    if "';'" in names and (word in _BEHIND_FORMULA or word == ")"):
        return _BEHIND_FORMULA.get(word, "there is no ( that this one closes")
    if "a comparison" in names and word in _BEHIND_CONDITION:
        return _BEHIND_CONDITION[word]
    for ending, hint in _ENDINGS.items():
        if re.search(f"{ending}$", before[-200:] + found, re.IGNORECASE):
            return hint
    before_clause = "$END" in accepted or "WHERE" in accepted
    if before_clause and word in _FOREIGN_CLAUSES:
        return _FOREIGN_CLAUSES[word]
    special = _at_its_place(word, before, accepted, names)
    if special is not None:
        return special
    if before_clause and word in _CLAUSES:
        clauses = "SELECT … FROM … WHERE … FILTER … PARTITION BY … WITHIN … CONSUME BY … LIMIT …"
        return f"the order of clauses is {clauses}, each once"
    if word in RESERVED and "NAME" in accepted and word != "WHERE":
        return f'{word} is a reserved word; in double quotes it is a name: "{found}"'
    inside = {"FILTER", "COMPARE"} & set(accepted) and {"AND", "RPAR", "FILTER"} & set(accepted)
    if (inside and word in (";", ":", "ALL", "UNLESS", "WITHOUT", "AS", "OR")) or (
        "FOR" in accepted and word == "FILTER"
    ):
        return "FILTER and WITHIN bind loosest: to continue after them, put the formula and them in parentheses"
    if "interval" in names and found == "'":
        return "a duration is written without quotes, as in 5 MINUTES"
    if "a formula" in names and (found == "'" or found[0].isdigit()):
        return 'a type that is not a plain name is written in double quotes: "{}"'.format(
            "…" if found == "'" else found
        )
    if not found[0].isalpha():
        return None
    words = [w for w in accepted if w in RESERVED or w in CONTEXTUAL]
    words += ["EVENTS"] * ("EVENTS" in accepted) + list(DURATION_UNITS) * ("UNIT" in accepted)
    words += ["ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT"] * ("STRATEGY" in accepted)
    near = nearest(found, words) if len(found) > 2 else None
    if near is None and word not in RESERVED and "AS" in accepted and "';'" in names:
        return f"a label comes after AS: … AS {found}"
    return f"Did you mean {near}?" if near else None


def _at_its_place(word: str, before: str, accepted: Collection[str], names: Collection[str]) -> str | None:
    last = before.rstrip()[-1:]
    if word == "*" and last == ".":
        label = before.rstrip(" .\n")[-40:].split()[-1].rpartition(",")[2]
        return f"all attributes are reported by the label alone, SELECT {label}, and some by SELECT {label}[v, w]"
    if word == "!":
        return "write NOT" if "a comparison" not in names else "write != for not equal, or NOT in front of a condition"
    if last == "=" and word in ("<", ">"):
        return f"write {word}="
    if "UNIT" in accepted and word in _SHORT_UNITS:
        return f"Did you mean {_SHORT_UNITS[word]}?"
    if "UNIT" in accepted and word in _FINER_UNITS:
        return _in_milliseconds(before, _FINER_UNITS[word])
    if list(names) == ["'->'"]:
        given = re.search(r"(\w+)\s*\[\s*(\w+)\s*$", before)
        if given and _COMPARED.fullmatch(word):
            return f"conditions come after FILTER: … FILTER {given[1]}[{given[2]} {word} …]"
        return f"[A -> B] renames a label; {_CONDITIONS}"
    if "FILTER" in names and {"'>'", "')'", "FILTER"}.issuperset(names):
        return "NOT takes one type; neither A nor B is (EVENT AS x FILTER x.type NOT IN ('A', 'B'))"
    if list(names) == ["BY"]:
        return f"write {before.split()[-1].upper()} BY {word if word in RESERVED else '…'}"
    if "FOR" in accepted and word in ("WITHIN", "UNTIL", "DURING", *_CLAUSES):
        return _DEADLINE
    if word in ("[", "'") and re.search(r"\bIN\s*$", before, re.IGNORECASE):
        return "a list of values is written in parentheses: IN (1, 2)"
    if word in ("PARTITION", "FILTER") and re.search(r"\bWITHIN\b", before, re.IGNORECASE) and "LIMIT" in accepted:
        return f"{word}{' BY' if word == 'PARTITION' else ''} comes before WITHIN"
    column = {"WHERE", "AS"}.issubset(accepted) or ("a strategy" in names and word == "NOT")
    if column and (_COMPARED.fullmatch(word) or word in ("AND", "OR")):
        return "in SELECT a condition is written in parentheses: SELECT (x.v > y.v) AS higher"
    if "WHERE" in accepted and word not in RESERVED:
        if nearest(word, ("FROM", "WHERE")):
            return None
        # Behind a value its name may stand.
        named = (
            "a column gets its name by AS, as in x.v AS v; " if "AS" in accepted and re.match(r'[\w"]', word) else ""
        )
        return f"{named}the formula comes after WHERE: SELECT * FROM s WHERE A ; B"
    return None


def _in_milliseconds(before: str, digits: int) -> str:
    """How the number at the end of a text is written, of a unit that is ``digits`` powers of ten below milliseconds."""
    number = re.search(r"(?<![\w.])\d+(?:\.\d+)?\s*$", before)
    amount = None if number is None else Decimal(number[0].strip()).scaleb(-digits)
    if amount is None or amount % Decimal("0.001"):
        return "the shortest unit is MILLISECONDS, with up to three digits after the point: a microsecond is 0.001"
    return f"the shortest unit is MILLISECONDS: {amount.normalize():f} MILLISECONDS"
