"""Shared by the tests: worked examples, ways of evaluating queries, and second opinions."""
