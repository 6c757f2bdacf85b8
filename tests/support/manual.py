"""The blocks of code in the README and the manual: which there are, and which of them tests execute.

``python -m support.manual`` in the folder ``tests`` counts them. A block below a comment ``<!-- not run: reason -->``
is not executed. A block with a title is a file of that name for the blocks below it.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
#: Languages of blocks that tests execute; ``py`` is Python that needs Spark, and queries are parsed.
EXECUTED = {"python", "py", "console", "sql", "sremo"}
UNEXPLAINED = "neither run nor explained"
_BLOCK = re.compile(
    r'(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    reason: str
    language: str
    title: str
    text: str

    @property
    def program(self) -> bool:
        """Whether it is Python, whose output a block ``text`` below it shows."""
        return self.language in {"python", "py"} and not self.reason and not self.title


def blocks(page: Path, heading: str = "") -> list[Block]:
    """The blocks of a page, or of its section with a heading."""
    text = page.read_text("utf-8")
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [Block(*found) for found in _BLOCK.findall(text)]


def census() -> Counter[tuple[str, str]]:
    """How many blocks of a language are executed, shown as output of another one, or left out."""
    counts: Counter[tuple[str, str]] = Counter()
    for page in PAGES:
        before = None
        for block in blocks(page):
            if block.reason:
                fate = "not run"
            elif block.language == "text" and before is not None and before.program:
                fate = "compared"
            else:
                fate = "run" if block.language in EXECUTED else "read" if block.title else UNEXPLAINED
            counts[block.language, fate] += 1
            before = block
    return counts


if __name__ == "__main__":
    for (language, fate), number in sorted(census().items()):
        print(f"{number:4} {language:8} {fate}")
    print(f"{sum(census().values()):4} blocks")
    for page in PAGES:
        for block in blocks(page):
            if block.reason:
                print(f"{page.relative_to(ROOT)}: {block.language} not run: {block.reason}")
