"""Lark's parsers for the grammars, made of tables that are kept in files.

Making the tables takes longer than most queries. They are kept as JSON, not as pickles as by Lark's own cache: to read
them executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from cerflow.base.cache_folder import cache_folder, keep, open_own
from cerflow.language.grammar.grammars import TreeBuilder
from cerflow.language.lexicon import lexical_grammar


def load_grammar(starts: Sequence[str], builder: TreeBuilder) -> Lark:
    """Lark's parser for texts of some kinds of CEQL or SREMO, building trees with ``builder``."""
    here = resources.files("cerflow.language.grammar")
    texts = [here.joinpath(file).read_text(encoding="utf-8") for file in ("condition.lark", "sremo.lark", "ceql.lark")]
    return parser_of("ceql", "\n".join([*texts, lexical_grammar()]), starts, builder)


def parser_of(name: str, grammar: str, starts: Sequence[str], builder: object) -> Lark:
    """Lark's parser for a grammar, which builds trees with the methods of ``builder``.

    Tables that are kept are taken if they are of this grammar, for this Lark and Python, and not damaged.
    """
    made_for = [grammar, list(starts), lark.__version__, sys.version_info[:2]]
    stamp = hashlib.sha256(json.dumps(made_for).encode()).hexdigest()[:16]
    folder = cache_folder()
    file = None if folder is None else folder / f"{name}-{stamp}.json"
    return (file and _kept(file, builder)) or _made(file, grammar, starts, builder)


def _kept(file: Path, builder: object) -> Lark | None:
    """The parser that was kept in a file, None if there is none or it cannot be read."""
    try:
        opened = open_own(file)
        if opened is None:
            return None
        with opened:
            tables = json.loads(opened.read(), object_hook=_with_numbers)
        tables["data"]["options"]["transformer"] = builder
        return Lark.load(tables)
    except Exception:
        # Lark may raise anything on damaged tables; they are made again.
        return None


def _with_numbers(pairs: dict[str, Any]) -> dict[str | int, Any]:
    """JSON has only texts as keys, the tables number states and symbols."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs.items()}


def _made(file: Path | None, grammar: str, starts: Sequence[str], builder: object) -> Lark:
    made = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=list(starts),
        transformer=builder,
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    if file is not None:
        data, memo = made.memo_serialize([TerminalDef, Rule])
        data["options"] = {name: value for name, value in data["options"].items() if name != "transformer"}
        # They are made again next time if they cannot be kept.
        with suppress(OSError):
            keep(file, json.dumps({"data": data, "memo": memo}).encode())
    return made
