"""Which events are relevant to a query, as a condition that Arrow or Spark can test before an event is read.

In come a transducer and a schema, out come filters; readers of files and Spark's DataFrames use them. `translation`
walks over a condition, `arrow` and `spark` (which needs PySpark) say what becomes of its leaves.
"""
