"""The policies for records that cannot be used: ``--on-bad-record`` and ``--dead-letter``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from cerflow.cli.output.targets import check_writable
from cerflow.cli.output.writing import output_format_of, write_table
from cerflow.errors import BadRecordError
from cerflow.files.reading import as_refused


class Policy(StrEnum):
    """``fail`` stops at the first, ``skip`` counts them, ``dead-letter`` keeps them in a file, with the reason."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


def parse_policy(on_bad_record: str, dead_letter: str | None) -> tuple[Policy, str | None]:
    """The policy and the path of the dead letters; ``dead-letter=PATH`` gives both. Raises ValueError if they clash."""
    name, _, path = on_bad_record.partition("=")
    if name not in list(Policy):
        raise ValueError(f"'{on_bad_record}' is not one of fail, skip, dead-letter, dead-letter=PATH")
    policy = Policy(name)
    if policy is not Policy.DEAD_LETTER:
        if path or dead_letter:
            raise ValueError("a path for dead letters goes with --on-bad-record dead-letter")
        return policy, None
    if path and dead_letter and path != dead_letter:
        raise ValueError("the path of the dead letters is given twice")
    if not (path or dead_letter):
        raise ValueError("--on-bad-record dead-letter needs --dead-letter PATH")
    return policy, path or dead_letter


@dataclass
class BadRecords:
    """Counts refused records, and keeps them if they will be written."""

    policy: Policy
    path: str | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self._kept: list[pa.Table] = []
        if self.path is not None:
            output_format_of(self.path)
            check_writable(self.path)

    def refuse(self, rows: pa.Table) -> None:
        """Take a table with the columns ``row`` and ``reason``; raises BadRecordError under the policy ``fail``."""
        if len(rows) == 0:
            return
        if self.policy is Policy.FAIL:
            raise BadRecordError(rows.column("row")[0].as_py(), rows.column("reason")[0].as_py())
        self.count += len(rows)
        if self.policy is Policy.DEAD_LETTER:
            self._kept.append(as_refused(rows))

    def write(self) -> None:
        """Write the dead letters; if there are none, write an empty file."""
        if self.path is None:
            return
        table = as_refused(pa.table({"row": pa.array([], pa.int64()), "reason": pa.array([], pa.string())}))
        table = pa.concat_tables([table, *self._kept], promote_options="permissive")
        write_table(self.path, output_format_of(self.path), table)
