"""The meaning of the languages, executable: slow, exact, and written like the tables of the specification.

Input: trees of `cerflow.language` and a stream of events. Output: sets of complex events. Only the runner "semantics"
uses this room; the engine has its own evaluation, which tests compare with this one.
"""
