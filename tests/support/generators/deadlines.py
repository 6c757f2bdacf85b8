"""Random queries with NOT FOLLOWED BY, as text, and events for them."""

import random

import pyarrow as pa

from support.generators.limits import number, places, size

COLUMNS = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("k", pa.int64()), ("w", pa.int64())])

#: The longest duration, and more events than streams have
WIDEST, MANY = 2**63 // 1000 - 1, 10**6


class DeadlineQueries:
    """Random queries with deadlines of all kinds."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.labels = 0

    def label(self):
        self.labels += 1
        return f"x{self.labels}"

    def event(self):
        kind, label = self.random.choice(["A", "A", "B", "C", "EVENT"]), self.label()
        comparison = f"{label}.v {self.random.choice('<>=')} {self.value()}"
        return self.random.choice([kind, f"({kind} AS {label})", f"({kind} AS {label} FILTER {comparison})"])

    def value(self):
        return number(self.random, 0, 3)

    def window(self):
        wide = size(self.random, 5)
        return self.random.choice(
            [f"{min(wide, WIDEST)} MILLISECONDS"] * 3 + [f"{min(wide, MANY)} EVENTS", f"{wide} [w]"]
        )

    def deadline(self, depth):
        if self.random.random() < 0.3:
            a, b = self.label(), self.label()
            one, other = self.random.choice("ABC"), self.random.choice("ABC")
            right = f"({other} AS {b} FILTER {b}.v = {a}.v)"
            return f"({one} AS {a} NOT FOLLOWED BY {right} FOR {self.window()})"
        return f"({self.formula(depth - 1)} NOT FOLLOWED BY {self.formula(depth - 2)} FOR {self.window()})"

    def formula(self, depth):
        if depth <= 0:
            return self.event()
        joined = [f"({{}} {operator} {{}})" for operator in (";", ";", "OR", "ALL", "UNLESS", "WITHOUT", ":")]
        joined += ["({} : {}?)", "({0} AND ({0} OR {1}))", "(({0}):+ ; {1})"]
        around = ["({})+", "STRICT({})", "START({})", "NEXT({})", "LAST({})", "MAX({})"]
        around += ["PROJECT A ({})", "({}){{1,2}}", f"({{}} WITHIN {self.window()})"]
        if self.random.random() < 0.35:
            return self.deadline(depth)
        return self.random.choice(joined * 2 + around).format(self.formula(depth - 1), self.formula(depth - 2))

    def query(self):
        chosen = ["*"] * 6 + ["NEXT *", "LAST *", "MAX *", "STRICT *", "NONE", "COUNT(*) AS n"]
        text = f"SELECT {self.random.choice(chosen)} WHERE {self.deadline(3)}"
        text += self.random.choice(["", " PARTITION BY [k]"])
        text += self.random.choice(["", "", "", f" WITHIN {self.window()}"])
        return text + self.random.choice(["", "", "", "", " CONSUME BY PARTITION"])

    def events(self, least=1, most=9):
        time, measure = (places(self.random) for _ in range(2))
        rows = []
        for _ in range(self.random.randint(least, most)):
            time += self.random.choice([0, 0, 1, 1, 2, 3, 5])
            measure += self.random.choice([0, 1, 1, 2])
            key, value = self.random.choice([1, 1, 2, 3, None]), self.value()
            known = self.random.choice([measure, measure, measure, None])
            rows.append({"type": self.random.choice("AABC"), "t": time, "v": value, "k": key, "w": known})
        return pa.Table.from_pylist(rows, COLUMNS)
