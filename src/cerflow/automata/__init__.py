"""Labelled symbolic register transducers and their constructions, one per file, each named after what it builds.

In comes a formula, out goes a `Transducer`: a frozen value that the engine turns into tables. Nothing beyond this
room knows which language a transducer came from.
"""
