"""The recognisers: they turn queries and events into matches.

A plan makes a query ready for a schema; machines process batches and single events. `cerflow.api.query`,
`cerflow.api.query_set`, slices and Spark's tasks call this room.
"""
