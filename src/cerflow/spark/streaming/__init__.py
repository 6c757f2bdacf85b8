"""Structured Streaming: makes a streaming DataFrame of matches from one of events.

`matching` builds the DataFrame. Its tasks divide events into `buckets` of keys, keep each bucket in order, recognise in
it, and remember it in Spark's state store (`processor`).
"""
