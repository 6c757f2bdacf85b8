"""Static analysis of trees: which event a label means, types against a schema, what a query reads of an event.

In come trees of `cerflow.language`, out come facts about them or a `QueryError` that says where the fault stands.
"""
