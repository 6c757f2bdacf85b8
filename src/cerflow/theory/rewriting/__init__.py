"""Rewritings of trees into trees that mean the same, one file for each rewriting of the papers."""
