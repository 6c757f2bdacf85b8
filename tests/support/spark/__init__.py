"""Servers of Spark, stand-ins for its tasks, and ways of comparing its results."""
