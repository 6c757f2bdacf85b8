"""Notations of other pattern languages, with what to write here instead."""

from __future__ import annotations

import re
from collections.abc import Collection

from cerflow.base.errors import nearest
from cerflow.base.units import DURATION_UNITS
from cerflow.language.lexicon import CONTEXTUAL, RESERVED

_CONDITIONS = "conditions come after FILTER: WHERE (A AS x ; B AS y) FILTER x.v > 1 AND y.v > x.v"
_SREMO = "an expression of SREMO is written in parentheses: SELECT * WHERE SREMO([type = 'A'] MARK)"

#: Anywhere.
_ANYWHERE = {
    "==": "equality is written with one =",
    "&&": "write AND",
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

#: Groups of terminals that have one name in messages if this many of them could stand there.
_OPERATORS = {
    "':'", "'['", "'>'", "'+'", "';'", "':+'", "'?'", "'{'", "':{'",
    "ALL", "AND", "AS", "FILTER", "IN", "NOT", "OR", "UNLESS", "WITHOUT",
}  # fmt: skip
_CLAUSES = {"CONSUME", "LIMIT", "PARTITION", "WITHIN"}
_TESTS = {"an arithmetic operator", "a comparison", "AND", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OR", "REGEXP"}
_FEW = ((_OPERATORS, "an operator", 8), (_TESTS, "an operator", 3), (_CLAUSES, "a clause", 3))


def few(names: Collection[str]) -> tuple[str, ...]:
    """The expected terminals, in few names: operators and clauses are not listed one by one."""
    left = list(names)
    found: list[str] = []
    for group, name, least in _FEW:
        if len(group.intersection(left)) >= least:
            found.append(name)
            # After a condition there may be another FILTER, which is not a clause of its own.
            left = [each for each in left if each not in group and (name != "a clause" or each != "FILTER")]
    return (*dict.fromkeys(found), *left)


def hint_for(found: str, before: str, accepted: Collection[str], names: Collection[str]) -> str | None:
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
    if list(names) == ["'->'"]:
        return f"[A -> B] renames a label; {_CONDITIONS}"
    if "FOR" in accepted and word in ("WITHIN", "UNTIL", "DURING"):
        return "the duration without such an event comes after FOR: A NOT FOLLOWED BY B FOR 5 MINUTES"
    if word == "[" and re.search(r"\bIN\s*$", before, re.IGNORECASE):
        return "a list of values is written in parentheses: IN (1, 2)"
    if word in ("PARTITION", "FILTER") and re.search(r"\bWITHIN\b", before, re.IGNORECASE) and "LIMIT" in accepted:
        return f"{word}{' BY' if word == 'PARTITION' else ''} comes before WITHIN"
    if "WHERE" in accepted and word not in RESERVED:
        if re.search(r"\bDISTINCT\s*$", before, re.IGNORECASE):
            return "there is no DISTINCT: every match is reported once"
        return (
            None if nearest(word, ("FROM", "WHERE")) else "the formula comes after WHERE: SELECT * FROM s WHERE A ; B"
        )
    return None
