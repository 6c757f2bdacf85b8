"""The recognisers: a plan made from a query and a schema, and the machines that batches and single events go through.

In come queries and events, out come matches. `cerflow.query`, `cerflow.query_set`, slices and Spark's tasks call it.
"""
