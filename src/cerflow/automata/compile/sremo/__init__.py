"""SREMO to transducers: a regular expression with memory goes in, a fragment comes out."""
