"""Files of events: reads CSV, JSON, Parquet and ORC, finds the types of columns, and refuses bad records."""
