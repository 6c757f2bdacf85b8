"""Every text that is not in the language gets an error that says where and what was expected."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError, QuerySyntaxError
from cerflow.language.parser import parse_condition, parse_formula, parse_query, parse_sremo


def error_of(text: str, parse: object = parse_formula) -> QuerySyntaxError | QueryError:
    with pytest.raises((QuerySyntaxError, QueryError)) as caught:
        parse(text)  # type: ignore[operator]
    return caught.value  # type: ignore[return-value]


def test_message_has_line_column_caret_and_suggestion() -> None:
    error = error_of("SELECT *\nFROM Stock\n  WHERE A AS x FLITER x.a > 1", parse_query)
    assert isinstance(error, QuerySyntaxError)
    assert (error.line, error.column) == (3, 16)
    assert error.excerpt == "  WHERE A AS x FLITER x.a > 1\n               ^^^^^^"
    assert "FILTER" in error.expected
    assert str(error).splitlines()[0].startswith("line 3, column 16: unexpected 'FLITER', expected ")
    assert str(error).endswith("Did you mean FILTER?")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("A WITHN 5 EVENTS", "WITHIN"),
        ("A WITHIN 5 EVNTS", "EVENTS"),
        ("A WITHIN 5 MINUTS", "MINUTES"),
        ("A FILTER x.a LIEK 'b'", "LIKE"),
        ("A FILTER x.a BETWEN 1 AND 2", "BETWEEN"),
        ("A FILTER x.a = 1 ADN x.b = 2", "AND"),
        ("A UNLES B", "UNLESS"),
    ],
)
def test_nearest_keyword(text: str, near: str) -> None:
    assert error_of(text).hint == f"Did you mean {near}?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A ;", "a formula"),
        ("A ; ; B", "a formula"),
        ("(A ; B", "')'"),
        ("A AS", "a name"),
        ("A FILTER", "a condition"),
        ("A FILTER x.", "an attribute"),
        ("A FILTER x.a >", "a value"),
        ("A FILTER x.a = = 1", "a value"),
        ("A FILTER x.a LIKE 3", "a string"),
        ("A WITHIN", "a number"),
        ("A WITHIN 5", "a unit of time"),
        ("A )", "the end"),
        ("START A", "'('"),
        ("A [x y]", "'->'"),
    ],
)
def test_expected_in_words(text: str, expected: str) -> None:
    error = error_of(text)
    assert isinstance(error, QuerySyntaxError)
    assert expected in error.expected
    assert not any(re.search(r"[A-Z]_|__|LPAR|RPAR|NAME|QUOTED", name) for name in error.expected)


@pytest.mark.parametrize("text", ["", "   ", "-- nothing\n"])
def test_empty(text: str) -> None:
    assert "the text is empty" in str(error_of(text))
    assert "expected SELECT" in str(error_of(text, parse_query))
    assert "the text is empty" in str(error_of(text, parse_sremo))


def test_end_of_text_is_shown_behind_it() -> None:
    error = error_of("A ;  ")
    assert "ends too early" in error.reason
    assert error.column == 4


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("A FILTER x.a = 'abc", "this string is not closed", 16),
        ("A FILTER x.a = 'it''s", "this string is not closed", 16),
        ('A AS "x', "this quoted name is not closed", 6),
        ("A /* comment", "this comment is not closed", 3),
        ('A AS ""', "a name cannot be empty", 6),
        ("A § B", "unexpected character '§'", 3),
        ("A # B", "unexpected character '#'", 3),
        ("A WITHIN 0 EVENTS", "the number of events in a window must be a positive integer", 10),
        ("A WITHIN 2.5 EVENTS", "the number of events in a window must be a positive integer", 10),
        ("A WITHIN 0 SECONDS", "a window must be larger than zero", 10),
        ("A WITHIN 0.0001 MILLISECONDS", "a duration must be a whole number of microseconds", 10),
        ("A WITHIN 1e-999999999 DAYS", "a duration must be a whole number of microseconds", 10),
        ("A WITHIN 1e-300 DAYS", "a duration must be a whole number of microseconds", 10),
        ("A WITHIN 1e18 DAYS", "this duration is too long", 10),
        ("A WITHIN 106751991 DAYS 106751991 DAYS", "this duration is too long", 10),
        ("A WITHIN 0 [t]", "a window must be larger than zero", 10),
        ("A FILTER x.a = 9223372036854775808", "this integer does not fit into 64 bits", 16),
        ("A FILTER x.a = -9223372036854775809", "this integer does not fit into 64 bits", 16),
        ("A FILTER x.a = " + "9" * 5000, "this integer does not fit into 64 bits", 16),
        ("A FILTER x.a = 1e999", "this number is too large", 16),
        ("A FILTER x.a = ٣", "numbers are written with the digits 0 to 9", 16),
        ("A FILTER x[a > 1 AND y[b > 1]]", "a bracket is not allowed inside a bracket", 22),
        ("A FILTER price > 1", "'price' needs a label here", 10),
        ("A FILTER x.a > 1 AND sum(price) > 1", "'price' needs a label here", 26),
        ("NOT(A FILTER v > 1)", "'v' needs a label here", 14),
        ("A FILTER p(EVENT)", "EVENT means the current event, but there is none outside a bracket", 12),
        ("A FILTER ok", "'ok' needs a label here", 10),
        ("A FILTER x.a = 1 AND (x.b + 1)", "this is a value, but a condition is expected here", 22),
        ("A FILTER NOT 'a'", "this is a value, but a condition is expected here", 14),
        ("A FILTER (x.a > 1) + 1 = 2", "this is a condition, but a value is expected here", 10),
        ("A FILTER x.a = (x.a > 1)", "this is a condition, but a value is expected here", 16),
        ("A FILTER x.a IN (1, x.b)", "only numbers, strings, TRUE, FALSE and NULL can be in the list after IN", 21),
        ("A FILTER abs(x.a, x.b) > 1", "abs takes one argument, but 2 are given", 10),
        ("A FILTER time() > 1", "outside a bracket time takes a label", 10),
        ("A FILTER near(position())", "outside a bracket position takes a label", 15),
        ("A FILTER position(x.a) > 1", "here the name of a label is expected", 19),
        ("A FILTER near(x.v, (y.a = 1))", "this is a condition, but a value is expected here", 20),
        ("A FILTER near((a))", "'a' needs a label here", 16),
    ],
)
def test_reason_and_place(text: str, reason: str, column: int) -> None:
    error = error_of(text)
    assert isinstance(error, QuerySyntaxError)
    assert (error.reason, error.column) == (reason, column)
    assert error.excerpt is not None


@pytest.mark.parametrize(
    ("text", "name", "suggestion"),
    [
        ("A FILTER flor(x.a) > 1", "flor", "floor"),
        ("A FILTER coun(x) > 1", "coun", "count"),
        ("A FILTER x.a > qux(x)", "qux", None),
    ],
)
def test_unknown_function(text: str, name: str, suggestion: str | None) -> None:
    error = error_of(text)
    assert isinstance(error, QueryError)
    assert error.reason == f"there is no function '{name}'"
    assert error.suggestion == suggestion
    assert error.column is not None


def test_regular_expression_that_cannot_be_read() -> None:
    error = error_of("A FILTER x.a REGEXP '(a'")
    assert isinstance(error, QueryError)
    assert "cannot be read" in error.reason
    assert error.column == 21


def test_what_a_terminal_would_obey_is_shown_as_signs_and_the_caret_stays_in_place() -> None:
    error = error_of('A AS "\x1b[31m\u202e\x85x" FILTER y.a = 1', lambda text: cerflow.parse(f"SELECT * WHERE {text}"))
    line, caret = str(error.excerpt).split("\n")
    assert line == 'SELECT * WHERE A AS "␛[31m��x" FILTER y.a = 1'
    assert line[caret.index("^")] == "y"


@pytest.mark.parametrize("pattern", [r"(a)\1", "a(?=b)", "(?<!a)b", "(?>a)b", "a++", r"\Z", "a{2000}"])
def test_regular_expressions_beyond_a_linear_engine_are_refused_with_their_place(pattern: str) -> None:
    error = error_of(f"A FILTER x.a REGEXP '{pattern}'")
    assert isinstance(error, QueryError)
    assert error.column == 21
    assert "RE2" in str(error)


def test_a_pattern_of_like_that_is_too_large_is_refused_with_its_place() -> None:
    error = error_of(f"A FILTER x.a LIKE '{'_' * 200_000}'")
    assert isinstance(error, QueryError)
    assert error.column == 19
    assert "this pattern cannot be used" in error.reason
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("A FILTER x.a == 1", "equality is written with one ="),
        ("A FILTER x.a = 1 && x.b = 2", "write AND"),
        ("A FILTER x.a = 1 || x.b = 2", "write OR"),
        ("!A", "write NOT"),
        ("A WITHIN '5 minutes'", "a duration is written without quotes, as in 5 MINUTES"),
        ("A ; 4625 AS x", 'a type that is not a plain name is written in double quotes: "4625"'),
        ("A ; 'a b'", 'a type that is not a plain name is written in double quotes: "…"'),
        ("A AS from", 'FROM is a reserved word; in double quotes it is a name: "from"'),
        ("last", None),
        ("A FILTER x.a = 1 ; B", "FILTER and WITHIN bind loosest"),
        ("A NOT FOLLOWED BY B FILTER B.a = 1 FOR 1 EVENT", "FILTER and WITHIN bind loosest"),
        ("A NOT FOLLOWED BY B WITHIN 5 MINUTES", "comes after FOR: A NOT FOLLOWED BY B FOR 5 MINUTES"),
        ("A NOT FOLLOWED BY B", "comes after FOR: A NOT FOLLOWED BY B FOR 5 MINUTES"),
        ("A NOT FOLLOWED B FOR 5 MINUTES", "write FOLLOWED BY …"),
        ("B NOT PRECEDED BY A", "B UNLESS A, and with no A since a C it is (C ; B) WITHOUT A"),
        ("NOT(A OR B)", "(EVENT AS x FILTER x.type NOT IN ('A', 'B'))"),
        ("C ; NOT (s>A ; B)", "NOT takes one type"),
        ("A ; B WITHIN 1 week", "a week is 7 DAYS"),
        ("A ; B WITHIN 500 MICROSECONDS", "the shortest unit is MILLISECONDS: 0.5 MILLISECONDS"),
        ("A ; B WITHIN 1 HOUR 20000000 ns", ": 20 MILLISECONDS"),
        ("A NOT FOLLOWED BY B FOR 2500.0 microsecond", ": 2.5 MILLISECONDS"),
        ("A ; B WITHIN 500", "a window is 500 EVENTS, 500 SECONDS (or another unit of time), or 500 [attribute]"),
        ("A+ AS a FILTER median(a.v) > 1", "the aggregates are count, sum, avg, min"),
        ("A ; B WITHIN 1500 NANOSECONDS", "with up to three digits after the point: a microsecond is 0.001"),
        ("A ; B WITHIN 2e3 µs", "with up to three digits after the point: a microsecond is 0.001"),
        ("A AS a FILTER ok AND a.v > 1", "write label.ok, or ok.attribute if it is a label"),
        ("A AS a FILTER a.v + 1", "compare it with something, as in x.price > 10"),
        ("A AS a FILTER a.ok IS TRUE", "truth values are compared by =, as in x.ok = TRUE"),
        ("A AS a FILTER a.s CONTAINS 'b'", "parts of texts are found by LIKE, as in x.s LIKE '%abc%'"),
        ("A AS a FILTER extract(hour FROM a.at) = 3", "parts of times are functions, as in hour(x.at)"),
        (
            "A AS a FILTER a.at > timestamp '2024-03-15'",
            "moments are written as texts, as in x.at > '2024-03-15T10:00'",
        ),
        (
            "A AS a FILTER a.ok is not false AND a.v > 1",
            "write x.ok = FALSE, and OR x.ok IS NULL where null counts, too",
        ),
        ("A ; B;", "a query ends without a semicolon"),
        ("A AS a FILTER a.s ILIKE 'x%'", "write lower(x.s) LIKE 'abc%'"),
        ("A AS a FILTER cast(a.s AS int) > 3", "cast the column before"),
        ("A AS a FILTER a.t::date > '2024-03-15'", "cast the column before"),
        ("A AS a FILTER a.s IN 'x'", "a list of values is written in parentheses"),
        ("status IN ('x', 'y')", None),
        ("add-to-cart ; buy", 'is written in double quotes: "a-b"'),
        ("GET/index ; buy", 'is written in double quotes: "a-b"'),
        ("A+ AS x FILTER count( * ) > 3", "count takes a label: WHERE A+ AS x FILTER count(x) > 3"),
        ("A AS a FILTER a.v = NaN", "NaN counts as null: write … IS NULL"),
        ("(A AS a ; B AS b) FILTER a.s LIKE b.s", "as in LIKE 'a%'; = compares two values"),
        ("A AS a FILTER a.s NOT REGEXP 5", "a pattern is a text in single quotes"),
        # A condition of another kind is still read as one.
        ("A AS a FILTER NOT (a.v = 1 ; a.v = 2)", "FILTER and WITHIN bind loosest"),
        ('A FILTER x.a = "INTC"', "strings are in single quotes"),
    ],
)
def test_hint(text: str, hint: str | None) -> None:
    error = error_of(text)
    if hint is None:
        assert error.hint is None
    else:
        assert error.hint is not None
        assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * WHERE A LIMIT 0", "the number after LIMIT must be a positive integer"),
        ("SELECT * WHERE A LIMIT 1.5", "the number after LIMIT must be a positive integer"),
        ("SELECT SUM(*) AS n WHERE A", "only COUNT takes *, not SUM"),
        ("SELECT price AS p WHERE A", "'price' needs a label here"),
        (
            "SELECT x.price s WHERE A AS x",
            "unexpected 's', expected an arithmetic operator, ',', '.', AS, FROM or WHERE",
        ),
        ("SELECT x.price + 1 FROM s WHERE A AS x", "a computed column needs a name"),
        ("SELECT *, x WHERE A AS x", "* reports all labels, so only values may accompany it, not the label 'x'"),
    ],
)
def test_in_queries(text: str, reason: str) -> None:
    assert error_of(text, parse_query).reason == reason


@pytest.mark.parametrize(
    "column", ["x.v < 3 AS a", "x.v IS NULL AS a", "count(x) > 3", "x, x.v + 1 = 2", "NOT x.v = 3 AS a"]
)
def test_a_condition_in_select_stands_in_parentheses(column: str) -> None:
    error = error_of(f"SELECT {column} WHERE A AS x", parse_query)
    assert error.hint == "in SELECT a condition is written in parentheses: SELECT (x.v > y.v) AS higher"


FOREIGN = {
    # What people write who know other languages, and a part of what they are told.
    "A -> B": "A ; B",
    "A → B": "A ; B",
    "A , B": "A ; B",
    "A THEN B": "A ; B",
    "A FOLLOWED BY B": "A ; B",
    "SEQ(A, B)": "A ; B",
    "A^3 ; B": "A{3}",
    "A TIMES 3 ; B": "A{3}",
    "A ; B* ; C": "A ; B{0,} ; C",
    "A & B": "A ALL B",
    "A | B": "A OR B",
    "A a ; B b": "AS a",
    "A AS x WHERE x.v > 1": "conditions come after FILTER",
    "A.v > 1": "conditions come after FILTER",
    "A[v > 1]": "conditions come after FILTER: … FILTER A[v > …]",
    "A AS x[ v like 'a%' ] ; B": "… FILTER x[v LIKE …]",
    "A UNTIL B": "WITHOUT B",
    "A ; B ORDER BY t": "sort the result",
    "A ; B)": "there is no ( that this one closes",
    "event = 'x'": "after WHERE come types of events",
    "A ; B PARTITION BY k, date(t)": "keys are attributes; add a column",
    "A FILTER A.v = 1 && A.w = 2": "write AND",
    "A FILTER A.v = 1, A.w = 2": "joined by AND",
    "A FILTER A.v == 1": "one =",
    "A FILTER A.v => 1": "write >=",
    "A FILTER A.v ≥ 1": "write >=",
    "A FILTER A.v IN [1, 2]": "IN (1, 2)",
    'A FILTER A.s = "x"': "single quotes: 'x'",
    "A FILTER A.s = ‘x’": "single quotes",
    "A # all": "comments are --",
    "A // all": "comments are --",
    "A WITHIN 5 min": "MINUTES",
    "A WITHIN 5 s": "SECONDS",
    "A WITHIN 5 EVENTS PARTITION BY k": "comes before WITHIN",
    "A NOT FOLLOWED BY B PARTITION BY k": "A NOT FOLLOWED BY B FOR 5 MINUTES",
    "A CONSUME PARTITION": "write CONSUME BY PARTITION",
    "A PARTITION k": "write PARTITION BY …",
    "A LIMIT 1 PER k": "counts at each event",
}


@pytest.mark.parametrize("formula", FOREIGN)
def test_words_and_signs_of_other_languages(formula: str) -> None:
    error = error_of(f"SELECT * WHERE {formula}", parse_query)
    assert error.hint is not None
    assert FOREIGN[formula] in error.hint
    # Few names, not all terminals.
    assert len(error.reason) < 90, error.reason


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("A ; B", "a query begins with SELECT: SELECT * WHERE A ; B"),
        ("SELECT * A ; B", "comes after WHERE"),
        *(
            (
                f"SELECT {items} WHERE A AS x",
                "a column gets its name by AS, as in x.v AS v; the formula comes after WHERE",
            )
            for items in ("x.v y", "x.w, x.v + 1 y", "max(x.v) y", "x, COUNT(*) y", 'x.v "y z"', "3 y")
        ),
        ("SELECT x.v FORM s WHERE A AS x", "Did you mean FROM?"),
        ("SELECT x.v + 1 WHERE A AS x", "Write the name after AS"),
        ("SELECT * FROM s MATCH_RECOGNIZE (PATTERN (A B+))", "SELECT * WHERE (A ; B+ ; C) FILTER"),
        ("PATTERN SEQ(A a)", "MATCH_RECOGNIZE"),
        ("SELECT f.*, g.v WHERE A AS f ; B AS g", "SELECT f[v, w]"),
        ("SELECT g.v AS v,f.* WHERE A AS f ; B AS g", "by the label alone, SELECT f, and"),
        *(
            (f"SELECT * {clause}", hint)
            for clause in (
                "WHERE A ; B {}",
                "WHERE (A ; B) FILTER A.v > 1 {}",
                "WHERE A ; B WITHIN 5 MINUTES {}",
                "WHERE A ; B PARTITION BY k {}",
                "WHERE A ; B LIMIT 5 {}",
                "{} WHERE A ; B",
                "FROM s {} WHERE A ; B",
            )
            for clause, hint in (
                (clause.format("GROUP BY k"), "divided by PARTITION BY"),
                (clause.format("ORDER BY k"), "order of their detection"),
            )
        ),
        ("SELECT * LIMIT 5 WHERE A ; B", "the order of clauses is SELECT … FROM … WHERE"),
        ("SELECT * FROM s LIMIT 5 WHERE A ; B", "the order of clauses is"),
        ("SELECT * FROM s PARTITION BY k WHERE A ; B", "the order of clauses is"),
        ("SELECT * WHERE A ; B LIMIT 5 PARTITION BY k", "the order of clauses is"),
        ("SELECT * WHERE A ; B LIMIT 5 WITHIN 5 MINUTES", "the order of clauses is"),
    ],
)
def test_beginnings_of_other_languages(text: str, hint: str) -> None:
    error = error_of(text, parse_query)
    assert error.hint is not None
    assert hint in error.hint


@pytest.mark.parametrize(
    "formula",
    [
        *("A ; B", "A : B", "(A+ AS x) FILTER count(x) = 3", "(A ; B+ ; C) OR (A ; C)", "A ALL B", "A ; C WITHOUT B"),
        *("C ; (EVENT AS x FILTER x.type NOT IN ('A', 'B'))", "(A+ AS x FILTER count(x) > 3) ; B", "A FILTER A[v > 1]"),
        *("B UNLESS A", "(C ; B) WITHOUT A", "A NOT FOLLOWED BY B FOR 5 MINUTES", "A ; B WITHIN 7 DAYS"),
        *("A ; B WITHIN 0.5 MILLISECONDS", "A AS a FILTER a.ok = TRUE", "A AS a FILTER a[ok = TRUE]"),
    ],
)
def test_what_hints_say_is_in_the_language(formula: str) -> None:
    parse_query(f"SELECT * WHERE {formula}")


@pytest.mark.parametrize("text", ["TOP 3 *", "TOP 10", "top *", "FIRST *", "first 2 *"])
def test_the_first_matches(text: str) -> None:
    error = error_of(f"SELECT {text} WHERE A ; B", parse_query)
    assert error.hint is not None
    assert "LIMIT 3 at the end" in error.hint
    assert error_of("SELECT first + WHERE A AS first", parse_query).hint is None


@pytest.mark.parametrize("text", ["*", "x", "x.v"])
def test_there_is_no_distinct(text: str) -> None:
    assert error_of(f"SELECT DISTINCT {text} WHERE A", parse_query).hint == (
        "there is no DISTINCT: every match is reported once"
    )


def test_what_must_stand_in_filter_is_not_a_renaming() -> None:
    error = error_of("A[v > 1] ; B")
    assert (error.reason, error.column) == ("a condition in brackets stands only after FILTER", 5)
    assert error_of("A [x y]").reason == "unexpected 'y', expected '->'"


def test_functions_are_named_where_none_is_near() -> None:
    error = error_of("A FILTER date(A.t) > 3")
    assert error.hint is not None
    assert error.hint.startswith("The functions are abs, avg, ")
    assert "weekday, year." in error.hint


def test_clauses_out_of_order() -> None:
    error = error_of("SELECT * WHERE A WITHIN 5 EVENTS PARTITION BY [a]", parse_query)
    assert isinstance(error, QuerySyntaxError)
    assert error.column == 34
    assert set(error.expected) == {"the end", "CONSUME", "LIMIT"}


def test_all_that_could_stand_at_the_end_is_named() -> None:
    error = error_of("A FILTER x[a = 'b'")
    assert isinstance(error, QuerySyntaxError)
    assert error.expected == ("an arithmetic operator", "a comparison", "']'", "AND", "OR")


def test_not_a_string() -> None:
    with pytest.raises(TypeError, match="must be a string, not bytes"):
        parse_formula(b"A")  # type: ignore[arg-type]


_PIECES = (
    *(
        "A",
        "x",
        ".",
        ";",
        ":",
        "+",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "..",
        ",",
        "=",
        "<",
        "->",
        "-",
        "*",
        "!",
        "&",
        "|",
        "?",
    ),
    *("FILTER", "AS", "AND", "OR", "NOT", "WITHIN", "5", "EVENTS", "IN", "SELECT", "WHERE", "TRUE", "NULL", "EVENT"),
    *("MARK", "INTO", "max", "count", "any", "next", "'a'", '"b"', "§", "--", "/*", "1e999", "x[a>1]", "x.a = 1"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    for parse in (parse_formula, parse_condition, parse_query, parse_sremo):
        try:
            parse(text)
        except (QuerySyntaxError, QueryError) as refused:
            error = refused
        else:
            continue
        assert error.line is not None
        assert error.excerpt is not None
