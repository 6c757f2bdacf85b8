"""The scan: one pass over the rows of a batch of Arrow, where they are, by a small program made for the query.

In come the tables of a transducer and record batches, out come the events that may change the result. The reader of
events calls it; where there is no such program, it evaluates columns instead.
"""
