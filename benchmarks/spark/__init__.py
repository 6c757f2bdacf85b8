"""Jobs on Spark in local mode: what plain `mapInArrow` takes, and cerflow's two ways, over the same Parquet files.

``python -m benchmarks.spark`` measures and prints one table. `ticks` makes the files, `questions` are the jobs,
`worker` is the process with a session, `usage` watches its processes, `measure` asks in turns, `bars` are
the aims, `table` shows.
"""
