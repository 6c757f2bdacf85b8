"""The examples of docs/language-by-example.md: title, meaning, query or what stands after WHERE, and stream."""

#: An event is written as its stream, type, value v, further attributes and time in seconds: ``s>A5(w=1)@3``.
EXAMPLES = {
    "Sequences": [
        ("One event", "Every event of the type is a match.", "A", "A B A"),
        ("`;` skips", "An A and a later B. Other events may occur in between, also other Bs.", "A ; B", "A C B B"),
        ("`:` does not skip", "An A and a B directly after it.", "A : B", "A B C A C B"),
        ("EVENT", "An A, and then an event of any type.", "A : EVENT AS other", "A C A B"),
        ("NOT", "An A, and then an event that is not a B.", "A : NOT(B)", "A B A C"),
        (
            "NOT with a FILTER",
            "An A, and then an event that is not a B above 3.",
            "A : NOT(B FILTER B.v > 3)",
            "A B5 A B2",
        ),
        ("OR", "The matches of both.", "A ; (B OR C)", "A B C"),
        ("AS", "A label of its own, beside that of the type.", "(A OR B) AS x ; C AS y", "A B C"),
        ("`[A -> x]`", "The label A becomes x; the label B stays.", "(A ; B) [A -> x]", "A B"),
        (
            "Several streams",
            "An A of the stream s, and a later event of any type of the stream r.",
            "SELECT * FROM s, r WHERE s>A ; r>EVENT AS y",
            "s>A r>A s>B r>B",
        ),
    ],
    "Repetition": [
        ("`+`", "One or more, in any choice: every subset of the As.", "A+ ; B", "A A B"),
        ("`:+`", "One or more without events in between.", "A:+ : B", "A A B"),
        ("`{2}`", "Exactly two; other events may occur in between.", "A{2}", "A B A A"),
        ("`{2,3}`", "Two or three.", "A{2,3}", "A B A A"),
        ("`{2,}`", "Two or more.", "A{2,} ; B", "A A A B"),
        ("`{0,2}`", "None, one or two. Also written `{,2}`.", "A ; B{0,2} ; C", "A B B C"),
        ("`:{2}`", "Two without events in between. `:{2,3}` and `:{2,}` work in the same way.", "A:{2}", "A B A A"),
        ("`?`", "One or none.", "A ; B? ; C", "A B C"),
        ("A longer part", "A whole formula may be repeated.", "(A ; B){2}", "A B A B"),
    ],
    "Conditions": [
        ("FILTER on one event", "Only As above 3.", "(A ; B) FILTER A.v > 3", "A5 A2 B1"),
        (
            "FILTER between events",
            "A B that is larger than its A.",
            "(A AS x ; B AS y) FILTER y.v > x.v",
            "A5 A2 B3 B7",
        ),
        ("All events of a label", "All As are above 3.", "A+ AS x ; B FILTER x.v > 3", "A5 A2 A4 B0"),
        (
            "OR between conditions",
            "All As are above 3, or all of them are 1. `AND` asks for both.",
            "(A+ AS x ; B) FILTER x.v > 3 OR x.v = 1",
            "A5 A1 B0",
        ),
        (
            "In a bracket",
            "Each A by itself is above 3 or 1. Bare attributes are those of x.",
            "(A+ AS x ; B) FILTER x[v > 3 OR v = 1]",
            "A5 A1 B0",
        ),
        ("SOME", "At least one A is above 3.", "(A+ AS x ; B) FILTER SOME x: x.v > 3", "A5 A2 B0"),
        (
            "A label from outside",
            "Each B is larger than the one A in front of it.",
            "A AS x ; (B AS y FILTER y.v > x.v)+ ; C",
            "A3 B5 B1 C0",
        ),
        (
            "Null",
            "The last A has no value. A comparison with null does not hold, nor does its negation.",
            "A AS x FILTER NOT x.v > 3",
            "A5 A2 A",
        ),
        (
            "IS NULL",
            "Only an A without a value. `IS NOT NULL` is the opposite.",
            "A AS x FILTER x.v IS NULL",
            "A5 A2 A",
        ),
        (
            "IN, BETWEEN",
            "Values from a list; also `IN {1..3}` and `BETWEEN 1 AND 3` for a range, ends included.",
            "A AS x FILTER x.v IN (1, 5)",
            "A5 A2 A1",
        ),
        (
            "LIKE",
            "The whole text fits the pattern: `%` is any text, `_` one character.",
            "A AS x FILTER x.w LIKE 'no%'",
            "A(w=north) A(w=snow)",
        ),
        (
            "REGEXP",
            "A regular expression fits somewhere in the text.",
            "A AS x FILTER x.w REGEXP 'no.$'",
            "A(w=north) A(w=snow)",
        ),
        (
            "Arithmetic and functions",
            "The two values differ by at most 1.",
            "(A AS x ; B AS y) FILTER abs(x.v - y.v) <= 1",
            "A5 A2 B4",
        ),
        (
            "position",
            "At most two events further on.",
            "(A AS x ; B AS y) FILTER position(y) - position(x) <= 2",
            "A C B B",
        ),
        (
            "time",
            "Less than five seconds later. `@3` is an event at second 3.",
            "(A AS x ; B AS y) FILTER time(y) - time(x) < 5 SECONDS",
            "A@0 B@3 B@5",
        ),
        ("`prev`", "Each A is larger than the one before.", "A{2,} AS x FILTER x[v > prev(v)]", "A3 A1 A2 A4"),
        (
            "Gaps",
            "Each A comes less than three seconds after the one before.",
            "A{2,} AS x FILTER x[time() - prev(time()) < 3 SECONDS]",
            "A@0 A@2 A@6 A@8",
        ),
        (
            "increasing",
            "The same as `x[v > prev(v)]`; also `decreasing`, `nondecreasing` and `nonincreasing`.",
            "A{2,} AS x FILTER increasing(x.v)",
            "A3 A1 A2 A4",
        ),
        (
            "Aggregates",
            "The As sum up to at least 6; also `count`, `avg`, `min`, `max`, `first`, `last` and `stddev`.",
            "A+ AS x FILTER sum(x.v) >= 6",
            "A3 A1 A4",
        ),
        (
            "CASE",
            "A value that depends on conditions.",
            "A AS x FILTER CASE WHEN x.v > 3 THEN 'large' ELSE 'small' END = 'large'",
            "A5 A2",
        ),
    ],
    "Together and not": [
        ("ALL", "An A and a B, in any order.", "A ALL B", "B A B"),
        ("AND", "The matches that both parts have, label by label.", "(A ; EVENT AS y) AND (A ; B AS y)", "A C B"),
        ("UNLESS", "A B, unless a C came before it, from the start of the stream on.", "B UNLESS C", "B C B"),
        ("WITHOUT", "An A and a B without a C in between.", "(A ; B) WITHOUT C", "A C A B"),
        (
            "WITHOUT, with a condition",
            "An A and a B without a C of the same value in between. UNLESS accepts such conditions, too.",
            "(A AS x ; B) WITHOUT (C AS c FILTER c.v = x.v)",
            "A1 A2 C1 B0",
        ),
        (
            "NOT FOLLOWED BY … FOR n EVENTS",
            "An A that no B follows within the next two events. The second of them shows that the deadline has passed.",
            "A NOT FOLLOWED BY B FOR 2 EVENTS",
            "A C A B C C C",
        ),
        (
            "NOT FOLLOWED BY … FOR a duration",
            "An A that no B follows for five seconds. Any event after that shows it.",
            "A NOT FOLLOWED BY B FOR 5 SECONDS",
            "A@0 A@4 B@6 C@7",
        ),
        (
            "NOT FOLLOWED BY … FOR a distance",
            "An A that no B follows until v has grown by 10.",
            "A NOT FOLLOWED BY B FOR 10 [v]",
            "A1 C5 C12 A20 B25 C31",
        ),
        (
            "After a deadline",
            "The next part begins after the last event before the deadline: the C may be the event that shows it.",
            "(A NOT FOLLOWED BY B FOR 5 SECONDS) ; C",
            "A@0 D@3 C@6",
        ),
    ],
    "Choices": [
        (
            "STRICT",
            "No events in between. `SELECT STRICT` is the same for the whole query.",
            "STRICT(A ; B+)",
            "A B B C B",
        ),
        ("START", "The pattern begins with the very first event.", "START(A ; B)", "A A B"),
        (
            "NEXT",
            "For each detecting event, the match with the earliest events. `NXT` is another spelling.",
            "SELECT NEXT * WHERE A ; B ; C",
            "A B B C",
        ),
        (
            "LAST",
            "For each detecting event, the match with the latest events.",
            "SELECT LAST * WHERE A ; B ; C",
            "A B B C",
        ),
        ("MAX", "The matches that are part of no other match.", "SELECT MAX * WHERE A+ ; B", "A A B"),
        (
            "ANY",
            "For each detecting event, one match: always the same one for the same input.",
            "SELECT ANY * WHERE A+ ; B",
            "A A B",
        ),
        ("NEXT inside a formula", "For every A, the earliest B and C.", "A ; NEXT(B ; C)", "A B B C"),
        ("LAST inside a formula", "For every A, the latest B and C.", "A ; LAST(B ; C)", "A B B C"),
        ("MAX inside a formula", "For every A, all Bs before the C.", "A ; MAX(B+ ; C)", "A B B C"),
        (
            "NEXT BY",
            "Only the As are compared: the earliest A, with every B. LAST and MAX accept BY, too.",
            "SELECT NEXT BY A * WHERE A ; B ; C",
            "A A B B C",
        ),
    ],
    "Queries": [
        (
            "SELECT labels",
            "Only the events of y are reported, with their v.",
            "SELECT y[v] WHERE A AS x ; B AS y",
            "A1 B2 B3",
        ),
        ("PROJECT", "The same in a formula; equal matches are one.", "PROJECT B (A ; B)", "A A B"),
        (
            "Computed columns",
            "A value for each match. Without `*` or labels beside it, no events are reported.",
            "SELECT x.v + y.v AS total, MATCH_NUMBER() AS number WHERE A AS x ; B AS y",
            "A1 B2 B3",
        ),
        (
            "Events and columns",
            "Events and a column; `count(distinct …)` counts different values.",
            "SELECT *, count(distinct x.v) AS values WHERE A+ AS x ; B",
            "A1 A1 B0",
        ),
        ("SELECT NONE", "Only the events at which there is a match.", "SELECT NONE WHERE A+ ; B", "A A B C B"),
        (
            "COUNT(*)",
            "How many matches each event detects, without listing them.",
            "SELECT COUNT(*) AS n WHERE A+ ; B",
            "A A B C B",
        ),
        ("WITHIN n EVENTS", "At most three events from the first to the last.", "A ; B WITHIN 3 EVENTS", "A C B B"),
        (
            "WITHIN a duration",
            "Less than five seconds from the first to the last.",
            "A ; B WITHIN 5 SECONDS",
            "A@0 B@3 B@5",
        ),
        (
            "WITHIN a distance",
            "Less than 10 by an attribute that never decreases.",
            "A ; B WITHIN 10 [v]",
            "A1 B5 B11",
        ),
        (
            "WITHIN inside a formula",
            "Only the B and the C must be near each other.",
            "A ; (B ; C WITHIN 2 EVENTS)",
            "A D B C C",
        ),
        ("PARTITION BY", "The same value of v.", "A ; B PARTITION BY v", "A1 A2 B1 B2"),
        (
            "PARTITION BY one key with two names",
            "The v of an A equals the w of a B.",
            "A ; B PARTITION BY [v, w]",
            "A1 A2 B(w=1) B(w=2)",
        ),
        ("CONSUME BY ANY", "After a match everything starts again.", "A ; B CONSUME BY ANY", "A B B A B"),
        (
            "CONSUME BY PARTITION",
            "After a match everything of the same key starts again.", "A ; B PARTITION BY v CONSUME BY PARTITION", "A1
            A2 B1 B1 B2", ), ("LIMIT", "At most two matches of each detecting event.", "SELECT * WHERE A+ ; B LIMIT 2",
            "A A B"), ( "DEFINE", "The matches of a query are events for the next one.", "DEFINE pair AS SELECT A.v AS v
            FROM s WHERE A : B;\n" "SELECT p.v AS first, q.v AS second FROM pair WHERE pair AS p ; pair AS q", "A1 B0 A2
            C0 A3 B0", ), ], "Regular expressions with memory and output": [ ( "`[c]`, MARK and AS", "`.` is the next
            event. MARK takes an event into the match; AS gives it a label.", "[type = 'A'] MARK . [type = 'B'] AS y",
            "A B C B", ), ( "Events that are read and left out", "`[TRUE]*` skips any events.", "[type = 'A'] MARK .
            [TRUE]* . [type = 'B'] MARK", "A B C B", ), ( "INTO", "A register remembers an event; `r.v` is its value.",
            "[type = 'A'] MARK INTO r . [TRUE]* . [v > r.v] MARK", "A3 B2 B5", ), ( "`|` and `?`", "One or the other;
            one or none.", "[type = 'A'] MARK . [type = 'B']? . ([type = 'C'] MARK | [type = 'D'] MARK)", "A B C A D",
            ), ("`+`", "One or more, without events in between.", "[type = 'A'] MARK . ([type = 'B'] MARK)+", "A B B C
            B"), ( "`&`", "The same events under the same labels in both.", "([type = 'A'] MARK . [TRUE] MARK) & ([TRUE]
            MARK . [v > 3] MARK)", "A1 B2 A1 B5", ), ( "`!` and WITHIN", "An A and a B without a C in between. Some
            complements need a window.", "[type = 'A'] MARK . !([TRUE]* . [type = 'C'] . [TRUE]*) . [type = 'B'] MARK
            WITHIN 5 EVENTS", "A C B A D B", ), ("`any`", "In order, with any events between.", "any([type = 'A'] MARK,
            [type = 'B'] MARK)", "A C B B"), ("`next`", "In order, each the first that fits.", "next([type = 'A'] MARK,
            [type = 'B'] MARK)", "A C B B"), ( "`unordered`", "In any order, one directly after the other.",
            "unordered([type = 'A'] MARK, [type = 'B'] MARK)", "B A B", ), ( "EPSILON, EMPTY", "EPSILON is the string
            without events, EMPTY no string at all.", "[type = 'A'] MARK . ([type = 'B'] MARK | EPSILON)", "A B", ), ],
            }
