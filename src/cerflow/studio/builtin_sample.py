"""The sample that the studio brings, with queries to begin with, and a line about each construct of the language."""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).with_name("sample.csv")

#: What each query finds, and the query.
QUERIES = {
    "One event, later another": "SELECT *\nWHERE cart AS c ; pay AS p\nPARTITION BY user\nWITHIN 10 MINUTES",
    "Two conditions at once": "SELECT *\nWHERE (pay AS small ; pay AS large) FILTER large.amount > 10 * small.amount\n"
    "PARTITION BY user\nWITHIN 30 MINUTES",
    "Something that does not come": "SELECT *\nWHERE cart AS c NOT FOLLOWED BY pay FOR 15 MINUTES\nPARTITION BY user",
    "Nothing else in between": "SELECT *\nWHERE (view AS v ; pay AS p) UNLESS cart\nPARTITION BY user\n"
    "WITHIN 10 MINUTES",
    "Events by a condition of their own": "DEFINE large AS amount >= 120\nSELECT *\nWHERE large AS x ; refund AS r\n"
    "PARTITION BY user",
    "Repetition, and values in place of events": "SELECT p.amount AS paid, count(v.user) AS views\n"
    "WHERE view+ AS v ; pay AS p\nPARTITION BY user\nWITHIN 3 MINUTES",
}

CONSTRUCTS = {
    "A ; B": "A, later B; other events may come between",
    "A : B": "A, and B is the very next event",
    "A OR B": "one of the two",
    "A AND B": "both, in any order",
    "A+": "one or more of A",
    "A AS x": "gives the event a label, to speak of it elsewhere",
    "… FILTER x.v > y.v": "keeps what meets a condition",
    "… UNLESS C": "no C within",
    "… NOT FOLLOWED BY C FOR 5 MINUTES": "no C until a deadline",
    "PARTITION BY user": "only events with the same value match together",
    "WITHIN 10 MINUTES": "the longest time from the first event to the last; also 10 EVENTS",
    "SELECT NEXT *": "fewer matches, as also MAX, LAST, ANY and STRICT",
    "DEFINE big AS v > 9": "names events by a condition, as if it were their type",
}
