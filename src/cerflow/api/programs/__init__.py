"""Programs: queries over the events that other queries, their definitions, find.

In come the statements of a text and the events; definitions add theirs, and out come the matches of the last query.
The package itself, the command line and Spark call `program`; nothing below them knows of programs. `checks` needs no
schema, `merged_streams` says which events a statement reads, and `recognizer` lets them pass all statements.
"""
