"""Equivalent transducers that are smaller, deterministic on outputs, or only detect.

Input and output: transducers, or fragments of them. `cerflow.automata.compile` and the engine's planning use this room.
"""
