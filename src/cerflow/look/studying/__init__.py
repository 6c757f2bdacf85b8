"""Queries studied on short streams: traced event by event, and asked why some events are not a match.

In: a query and events. Out: plain values that say what happened, for notebooks and the studio. The steps are those of
the query's own transducer, by the definition of its runs; tests compare them with the matches of the engine.
"""
