"""Transducers that do the same with less: simplified, deterministic on outputs, or only detecting.

In and out come transducers (or fragments on the way there); `cerflow.automata.compile` and the engine's planning call.
"""
