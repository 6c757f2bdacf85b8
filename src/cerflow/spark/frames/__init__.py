"""Prepares DataFrames: the columns that a query needs, conditions for Spark, the tasks that recognise, the result."""
