"""A hook of MkDocs: pages of the repository outside `docs/` are pages of the site, too, and tables show `|` in code."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.lexer import words
from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword

from cerflow.language.lexicon import CONTEXTUAL, RESERVED

ROOT = Path(__file__).parents[1]
#: Files at the top of the repository, and their pages.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# Blocks of SQL show the keywords of CEQL, too.
_KEYWORDS = (*RESERVED, *CONTEXTUAL, "DEFINE", "EVENTS", "SREMO")
SqlLexer.tokens["root"].insert(0, (words(_KEYWORDS, suffix=r"\b"), Keyword))

#: Code with an escaped ``|``, which stands only in tables.
_CODE_IN_ROW = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; their links into `docs/` become links beside them."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files at the top of the repository to their pages.

    GitHub needs a backslash before ``|`` in the code of a table, which Python-Markdown would show.
    """
    markdown = _CODE_IN_ROW.sub(lambda code: code[0].replace("\\|", "|"), markdown)
    for name, target in PAGES.items():
        markdown = re.sub(rf"\]\(\.\./{re.escape(name)}(#[^)]*)?\)", rf"]({target}\1)", markdown)
    return markdown
