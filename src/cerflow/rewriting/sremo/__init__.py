"""Rewritings of SREMO expressions into others that mean the same, one a file."""
