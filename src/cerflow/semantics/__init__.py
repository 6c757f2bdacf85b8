"""The meaning of the languages, executable: slow, exact, and written like the tables of the specification.

In come trees of `cerflow.language` and a stream of events, out come sets of complex events. Tests trust only this
room. Only the runner "semantics" uses it; the engine evaluates with code of its own.
"""
