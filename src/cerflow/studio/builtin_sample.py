"""The sample that the studio brings, with queries to begin with, and a line about each construct and each key."""

from __future__ import annotations

import tomllib
from pathlib import Path

SAMPLE = Path(__file__).with_name("sample.csv")
_TOLD: dict[str, dict[str, str]] = tomllib.loads(SAMPLE.with_suffix(".toml").read_text("utf-8"))
#: What each query finds, and the query.
QUERIES = _TOLD["queries"]
#: What the constructs of the language mean, and what keys do.
CONSTRUCTS, KEYS = _TOLD["constructs"], _TOLD["keys"]
