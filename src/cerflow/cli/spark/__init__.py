"""Spark for the commands: Java, a session, inputs as DataFrames, and the job that runs a query."""
