"""An extension of Griffe: examples in docstrings (``>>> …``) are blocks of code in the API reference."""

import re
from typing import Any

import griffe

#: Lines of input and output up to an empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?=\S).*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts every example between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """See `griffe.Extension`."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
