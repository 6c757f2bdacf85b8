"""Which events are relevant to a query, as a condition that Arrow or Spark can test before an event is read.

In come a transducer and a schema, out come filters. `relevance` gives the condition; `translation` walks over it, and
says what becomes of its leaves for Arrow, as `cerflow.spark.frames.conditions` says it for Spark.
"""
