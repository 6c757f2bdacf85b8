"""What the commands need of Spark: Java, a session, inputs as DataFrames, and the job that runs a query."""
