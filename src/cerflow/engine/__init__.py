"""The engine: a transducer and events in columns go in, matches come out.

It knows neither formulas nor Spark. `program` turns a transducer into tables, `columns` a batch of events into typed
columns, `kernels` do the work, `recognizer` holds the state between batches, `matches` unfolds what was found.
"""
