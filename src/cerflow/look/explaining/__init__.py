"""Explanations: what a query is compiled to, and what is evaluated where.

In comes a query, and a schema if there is one; out come facts as JSON, text for people, or a graph.
`cerflow.api.query`, programs and Spark call this room.
"""
