"""DataFrames in and out: the columns a query needs, conditions for Spark, the tasks that recognise, the result."""
