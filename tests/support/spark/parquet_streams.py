"""Streams in Parquet files, and what the data source makes of them in this process."""

import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq

from cerflow.spark.source.planned import plan_read
from cerflow.spark.source.task import matches_of


def write(folder, table, files=((),), **options):
    """Write a table into files of row groups: for each file the sizes of its groups; what is left goes into the last.

    An empty group is written for a size of 0.
    """
    start = 0
    for number, sizes in enumerate(files):
        with pq.ParquetWriter(folder / f"part-{number:03}.parquet", table.schema, **options) as writer:
            for size in sizes:
                writer.write_table(table.slice(start, size), row_group_size=max(size, 1))
                start += size
            if number == len(files) - 1 and start < table.num_rows:
                writer.write_table(table.slice(start))
    return str(folder)


def planned(query, path, **options):
    """The plan of a read, as on the driver."""
    given = {"query": query, "path": path} | options
    return plan_read({name: str(value) for name, value in given.items() if value is not None})


def recognised(query, path, **options):
    """The matches of all tasks, one after the other, from what travels to them."""
    plan = pickle.loads(pickle.dumps(planned(query, path, **options)))
    batches = [batch for task in plan.tasks for batch in matches_of(plan.work, task)]
    return pa.Table.from_batches(batches, schema=batches[0].schema) if batches else pa.table({})


def on_many_cores(monkeypatch, cores=64):
    """Let plans expect many cores, so that streams are cut even where that costs much."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
