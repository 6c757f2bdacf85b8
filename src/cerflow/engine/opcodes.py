"""Instructions of the small stack programs for atoms that are not plain comparisons.

Truth values are 1, 0 and null (unknown). Instructions from `AND` to `BEST_F` combine the two topmost values, those from
`NOT` on change the topmost one. `BEST_I` and `BEST_F` leave the first of two values unless it is null or the second one
compares with it as their argument says. `SELECT` takes a condition and two values and leaves one of them, `CALL` takes
the arguments of a predicate and leaves its answer. `ROWS` pushes the address of a collection's rows and their number of
words. `KEEP` and `KEPT` keep the topmost value and push one that was kept; only programs on many rows have them.
"""

from __future__ import annotations

(
    COLUMN,
    SLOT,
    CONSTANT,
    SET_FIELD,
    ROWS,
    SELECT,
    CALL,
    KEPT,
    AND,
    OR,
    COMPARE_I,
    COMPARE_F,
    ADD_I,
    SUBTRACT_I,
    MULTIPLY_I,
    REMAINDER_I,
    QUOTIENT_I,  # rounded down
    ADD_F,
    SUBTRACT_F,
    MULTIPLY_F,
    REMAINDER_F,
    DIVIDE,
    JOIN_I,
    JOIN_F,
    COALESCE_I,
    COALESCE_F,
    BEST_I,
    BEST_F,
    NOT,
    TRUE_ONLY,
    RANKED,
    TO_FLOAT,
    IS_NULL_I,
    IS_NULL_F,
    NEGATE_I,
    NEGATE_F,
    ABS_I,
    ABS_F,
    FLOOR,
    CEIL,
    ROUND,
    SQUARE_ROOT,
    DATED,
    WHOLE,
    KEEP,
) = range(45)
