"""Structured Streaming: a streaming DataFrame of events goes in, a streaming DataFrame of matches comes out.

`matching` builds the DataFrame. Its tasks divide events into buckets of keys (`packing`), keep each bucket in order and
recognise in it (`bucket`), and remember it in Spark's state store (`remembering`, `processor`). All but `matching` and
`processor` is free of Spark.
"""
