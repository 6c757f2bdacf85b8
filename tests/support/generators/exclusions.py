"""Random queries whose excluded part is compared with events outside of it, as text, and events for them."""

import random

import pyarrow as pa

from support.generators.limits import FLOATS, INTEGERS, number, places

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("n", pa.int64()),
    ]
)
_RELATIONS = ("=", "<", "<=", ">", ">=", "<>")


class ExclusionQueries:
    """Random queries with UNLESS, WITHOUT and NOT FOLLOWED BY, with two or three relations to outer labels mostly."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def _either(self, chance, text, other=""):
        return text if self.random.random() < chance else other

    def relation(self, x, y):
        choice, relation = self.random.choice, self.random.choice(_RELATIONS)
        column = choice("vwn")
        return choice(
            [
                *[f"{x}.{column} {relation} {y}.{column}"] * 5,
                f"{x}.s {choice(['=', '<>'])} {y}.s",
                f"time({x}) - time({y}) {relation} {number(self.random, -3, 5)}",
                f"abs(time({x}) - time({y})) {relation} {number(self.random, 0, 3)}",
                f"position({x}) - position({y}) {relation} {number(self.random, -3, 3)}",
                f"{x}.v + {y}.v {relation} {number(self.random, 0, 3)}",
                f"abs({x}.v - {y}.v) {relation} {number(self.random, 0, 2)}",
                f"({x}.v < {y}.v OR {x}.w >= {y}.w)",
            ]
        )

    def joined(self, labels, types):
        parts = [self._either(0.93, f"{self.random.choice(types)} AS {x}", f"EVENT AS {x}") for x in labels]
        whole = parts[0]
        for part in parts[1:]:
            (operator,) = self.random.choices([";", ":", "ALL"], [8, 1, 1])
            whole = f"({whole} {operator} {part})"
        return whole

    def excluded(self, outer):
        inner = ["c", "d", "e"][: self.random.choice([1, 2, 2, 3])]
        part = self.joined(inner, self.random.choice(["CD", "CDA", "CDE"]))
        if len(inner) == 1:
            part = self._either(0.5, f"({part})+", part)
        relations = []
        for _ in range(self.random.choice([1, 2, 2, 2, 3, 3])):
            pair = [self.random.choice(inner), self.random.choice(outer)]
            self.random.shuffle(pair)
            relations.append(self.relation(*pair))
        if self.random.random() < 0.2:
            relations.append(f"{self.random.choice([*inner, *outer])}.v > 0")
        condition = f" {self._either(0.85, 'AND', 'OR')} ".join(relations)
        part = f"({part} FILTER {self._either(0.07, f'NOT ({condition})', condition)})"
        return self._either(0.25, f"({part} WITHIN {self.window()})", part)

    def window(self):
        return self.random.choice(["4 EVENTS", "6 MILLISECONDS", "3 [n]"])

    def query(self):
        outer = ["a", "b", "x"][: self.random.choice([1, 2, 2, 3])]
        kept = self.joined(outer, self.random.choice(["AB", "ABE"]))
        kept = self._either(0.25, f"({kept} WITHIN {self.window()})", kept)
        frame = self.random.choice(["{}"] * 6 + ["(E AS y ; {})", "({} ; E AS y)", "({} ALL E AS y)"])
        excluded = self.excluded([*outer, "y"] if "y" in frame else outer)
        operator = self.random.choice(["UNLESS", "UNLESS", "WITHOUT", "NOT FOLLOWED BY"])
        deadline = f" FOR {self.window()}" if operator == "NOT FOLLOWED BY" else ""
        around = self.random.choice(["{}"] * 12 + ["NEXT({})", "({})+", "({} UNLESS (D AS h FILTER h.v = a.v))"])
        whole = around.format(frame.format(f"({kept} {operator} {excluded}{deadline})"))
        return f"SELECT * WHERE {whole}{self._either(0.3, f' WITHIN {self.window()}')}"

    def events(self, least=4, most=11):
        time, measure = places(self.random), places(self.random)
        far = self.random.choice([0, 0, 1])
        rows = []
        types = self.random.choice(["ABCD", "ABCDE", "ABCCDE", "AABBCD"])
        for _ in range(self.random.randint(least, most)):
            time += self.random.choice([0, 1, 1, 2, 3])
            measure += self.random.choice([0, 0, 1, 2])
            v, w, s = (
                self.random.choice([*range(-1, 4), *INTEGERS[:: self.random.randint(5, 9)] * far]),
                self.random.choice([-0.0, 0.0, 0.5, 1.0, 2.5, *FLOATS[:: self.random.randint(5, 9)] * far]),
                self.random.choice("pq"),
            )
            v, w, s = (None if self.random.random() < 0.05 else value for value in (v, w, s))
            rows.append({"type": self.random.choice(types), "t": time, "v": v, "w": w, "s": s, "n": measure})
        return pa.Table.from_pylist(rows, schema=COLUMNS)
