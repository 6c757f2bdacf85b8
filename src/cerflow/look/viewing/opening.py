"""Shows a page where the user is: in a notebook, or else in the browser."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any


def open_page(text: str) -> Path | None:
    """Show a page: in the notebook this process works for, or in the browser; then the path of its file is returned.

    The file is a temporary one that stays, as the browser reads it later.
    """
    # A notebook has imported IPython before us.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        display: Any = import_module("IPython.display")
        display.display(display.HTML(frame_of(text)))
        return None
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="cerflow-matches-", suffix=".html", delete=False
    ) as file:
        file.write(text)
    webbrowser.open(Path(file.name).as_uri())
    return Path(file.name)


def frame_of(text: str, height: int = 640) -> str:
    """A page as part of another one, as high as this many pixels and without access to the other one.

    Notebooks that are not trusted leave only the sentence.
    """
    return (
        f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 6px">'
        "The matches in their stream are shown once the notebook is trusted.</iframe>"
    )
