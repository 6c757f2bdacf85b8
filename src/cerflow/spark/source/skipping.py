"""Row groups without relevant events: by their statistics, and by the types of their events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pyarrow.dataset as ds

from cerflow.automata.model.transducer import Transducer
from cerflow.language.condition import Condition
from cerflow.language.select import Select
from cerflow.pushdown.arrow import arrow_filter
from cerflow.pushdown.relevance import relevant_events
from cerflow.schema import Schema
from cerflow.slices.by_row_groups import RowGroup
from cerflow.spark.source.files import DataFile, each, filesystem_of


def relevant_condition(select: Select, transducer: Transducer, schema: Schema, *, counted: bool) -> Condition:
    """The condition that every relevant event of a query satisfies; ``counted`` says that all are numbered."""
    return relevant_events(select, transducer, schema, counted=counted).condition


def relevant_groups(
    groups: Sequence[RowGroup], files: Sequence[DataFile], condition: Condition, schema: Schema, *, skip: bool
) -> list[RowGroup]:
    """The row groups of some files that may have a relevant event, by their statistics.

    All files have the columns of ``schema``. A group that may have bad records is left out only if these are skipped.
    """
    wanted = arrow_filter(condition, schema)
    if wanted is None:
        return list(groups)

    def some(of_file: tuple[int, list[RowGroup]]) -> list[RowGroup]:
        number, own = of_file
        file = files[number]
        fragment = ds.ParquetFileFormat().make_fragment(file.path, filesystem_of(file.root))
        kept = {info.id for info in fragment.subset(wanted, schema=schema.columns).row_groups}
        return [group for group in own if group.index in kept or not (skip or group.valid == group.rows)]

    by_file = [(number, list(own)) for number, own in groupby(groups, key=lambda group: group.file)]
    return [group for own in each(some, by_file) for group in own]
