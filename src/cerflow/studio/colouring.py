"""The words of a query text, whether or not it is valid yet: in colour, and to be completed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

import pyarrow as pa

from cerflow.base.errors import DOT
from cerflow.base.nested import field_type, nested_names, parts_of
from cerflow.base.units import DURATION_UNITS
from cerflow.language.lexicon import BUILT_IN, CONTEXTUAL, RESERVED, quote_attribute, quote_name

KEYWORDS = frozenset({*RESERVED, *CONTEXTUAL, *DURATION_UNITS, "EVENTS", "DEFINE", "CASE", "DISTINCT", "COUNT", "WITH"})
_FUNCTIONS = frozenset(name.lower() for name in BUILT_IN)
_WORDS = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|$))
      | (?P<string>'(?:[^']|'')*'?)
      | (?P<quoted>"(?:[^"]|"")*"?)
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = r'"(?:[^"]|"")+"|[^\W\d]\w*'
#: What says nothing about names; and DEFINE with its conditions.
_SILENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)|'(?:[^']|'')*'?", re.DOTALL)
_DEFINED = re.compile(r"\bDEFINE\b.*?(?=\bSELECT\b|;|$)", re.IGNORECASE | re.DOTALL)


class ColouredWord(NamedTuple):
    """The stretch ``[start, end)`` of a text, and what it is: keyword, function, type, attribute, string …"""

    start: int
    end: int
    kind: str


def coloured(text: str, types: Collection[str] = ()) -> Iterator[ColouredWord]:
    """The words of a text; ``types`` are event types, which have a colour of their own."""
    labels, types = labels_in(text), {*types, *defined_in(text)}
    for found in _WORDS.finditer(text):
        kind = str(found.lastgroup)
        if kind in ("word", "quoted"):
            name = found.group().strip('"')
            before = text[: found.start()].rstrip()[-1:]
            after = text[found.end() :].lstrip()[:1]
            kind = _kind(name, kind == "quoted", before, after, types, labels)
        if kind:
            yield ColouredWord(found.start(), found.end(), kind)


def _kind(name: str, quoted: bool, before: str, after: str, types: Collection[str], labels: Collection[str]) -> str:
    if before == ".":
        return "attribute"
    if not quoted and after == "(" and name.lower() in _FUNCTIONS and name.upper() not in ("ALL", "ANY", "NOT"):
        return "function"
    if not quoted and name.upper() in KEYWORDS:
        return "keyword"
    return "type" if name in types else "label" if name in labels else ""


def labels_in(text: str) -> frozenset[str]:
    """The labels that a text gives with AS; it need not be a query yet."""
    rest = _DEFINED.sub(lambda part: " " * len(part.group()), _SILENT.sub(" ", text))
    return _names(rf"\bAS\s+({_NAME})", rest) - {"SELECT", "select"}


def defined_in(text: str) -> frozenset[str]:
    """The event kinds and definitions that a text names with DEFINE; it need not be a query yet."""
    parts = _DEFINED.findall(_SILENT.sub(" ", text))
    return frozenset[str]().union(*(_names(rf"(?:\bDEFINE\s+|,\s*)({_NAME})\s+AS\b", part) for part in parts))


def _names(pattern: str, text: str) -> frozenset[str]:
    return frozenset(name.strip('"') for name in re.findall(pattern, text, re.IGNORECASE))


def completions(text: str, types: Collection[str], columns: pa.Schema) -> dict[str, list[dict[str, str]]]:
    """The words that may be completed, by the names and dots before them.

    ``""`` has the words anywhere, ``"."`` those after the name of any label, ``"device."`` and ``"x.device."`` the
    fields of a struct.
    """
    labels = sorted(labels_in(text))
    paths = [f"{quote_name(label)}." for label in labels]
    words = [{"label": word, "type": "keyword"} for word in sorted(KEYWORDS)]
    for kind, detail, found in (
        ("class", "event type", types),
        ("class", "event kind", sorted(defined_in(text))),
        ("variable", "label", labels),
    ):
        words += [{"label": name, "type": kind, "detail": detail} for name in found]
    kinds = {name: field_type(columns, parts_of(name)) for name in (*columns.names, *nested_names(columns))}

    def properties(before: str) -> list[dict[str, str]]:
        """Attributes, as they are written after the name of a struct."""
        return [
            {"label": quote_attribute(name.removeprefix(before)), "type": "property", "detail": str(kind)}
            for name, kind in kinds.items()
            if name.startswith(before)
        ]

    attributes = properties("")
    # Conditions of DEFINE, and PARTITION BY, name attributes without a dot.
    found = {"": words + attributes, ".": attributes}
    for name, data_type in kinds.items():
        if pa.types.is_struct(data_type):
            found |= {f"{path}{quote_attribute(name)}.": properties(name + DOT) for path in ("", *paths)}
    return found | dict.fromkeys(paths, attributes)
