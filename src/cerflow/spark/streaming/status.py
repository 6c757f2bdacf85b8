"""The progress of a streaming query, as a value and as text for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np


@dataclass(frozen=True)
class StreamStatus:
    """The progress of a streaming query.

    ``batch`` is the last micro-batch that was written, ``at`` the time of that, and ``watermark`` the time before which
    events are late (None before the first event). ``totals`` counts events, late ones, bad ones, released ones and
    matches since the checkpoint began, ``last`` those of the last micro-batch, and the buckets with events in it and
    those that were in memory (``held``). ``remembered`` sums up waiting events, configurations, nodes, keys and bytes
    of state over all buckets. ``lacking`` counts the events without a value in columns that the query reads of events
    of their types.
    """

    batch: int
    at: str
    watermark: str | None
    totals: Mapping[str, int]
    last: Mapping[str, int]
    remembered: Mapping[str, int]
    lacking: Mapping[str, int] = field(default_factory=dict)


_TOTALS = {
    "events": "Relevant events",
    "late": "Events that came after the delay",
    "bad": "Events that cannot be used",
    "released": "Events that the watermark has passed",
    "matches": "Matches found",
}
_GAUGES = {
    "waiting": "Events that wait for the watermark",
    "configurations": "Configurations that are remembered",
    "nodes": "Nodes of the match graph that are remembered",
    "keys": "Keys that are remembered",
    "state_bytes": "Bytes in the state store",
    "batch": "Last micro-batch that was written",
    "batch_seconds": "When the last micro-batch was written, in seconds since 1970",
    "watermark_seconds": "Time before which events are late, in seconds since 1970",
    "watermark_lag_seconds": "How far the watermark was behind the clock when the micro-batch was written",
    "buckets": "Buckets that got events in the last micro-batch",
    "buckets_held": "How many of these buckets were in memory",
}


def prometheus_text(status: StreamStatus, checkpoint: str) -> str:
    """A status in the text format of Prometheus, with the checkpoint as a label."""
    at = datetime.fromisoformat(status.at).timestamp()
    gauges: dict[str, float] = {
        **status.remembered,
        "batch": status.batch,
        "batch_seconds": at,
        "buckets": status.last["buckets"],
        "buckets_held": status.last["held"],
    }
    if status.watermark is not None:
        watermark = np.datetime64(status.watermark.rstrip("Z"), "us").astype(int) / 1e6
        gauges |= {"watermark_seconds": watermark, "watermark_lag_seconds": at - watermark}
    label = checkpoint.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = []
    for kind, suffix, described, values in (
        ("counter", "_total", _TOTALS, status.totals),
        ("gauge", "", _GAUGES, gauges),
    ):
        for name, help_ in described.items():
            if name not in values:
                continue
            full = f"cerflow_stream_{name}{suffix}"
            lines += [f"# HELP {full} {help_}", f"# TYPE {full} {kind}"]
            lines.append(f'{full}{{checkpoint="{label}"}} {values[name]}')
    return "\n".join([*lines, ""])
