"""The page of the manual about the query language, which comes with the studio."""

from __future__ import annotations

import re
from pathlib import Path

import markdown2

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The query language</title>
<style>
:root { color-scheme: light; background: #fff; color: #1e293b; --link: #4338ca }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; background: #121212; color: #e2e8f0; --link: #a5b4fc }
}
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif }
body { overflow-wrap: anywhere }
a { color: var(--link) }
pre, code { font-family: ui-monospace, 'DejaVu Sans Mono', monospace; font-size: 0.9em; white-space: pre-wrap }
pre { border: 1px solid #8888; border-radius: 6px; padding: 0.5rem 1rem }
td, th { text-align: left; vertical-align: top; padding: 2px 12px 2px 0 }
</style>
<main>%s</main>
</html>
"""


def manual() -> str:
    """The page as HTML: of an installed package, or of the sources that it is run from."""
    here = Path(__file__)
    installed = here.with_name("language.md")
    text = (installed if installed.is_file() else here.parents[3] / "docs" / "language.md").read_text("utf-8")
    # The other pages of the manual are not here.
    text = re.sub(r"\[([^]]*)\]\((?!#|https:)[^)]*\)", r"\1", text)
    extras = ["tables", "fenced-code-blocks", "header-ids"]
    # A head of a table that says nothing is a cell like others.
    found = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", str(markdown2.markdown(text, extras=extras)))
    return _PAGE.replace("%s", found)
