"""Files of events: what is read from CSV, JSON, Parquet and ORC, of which type its columns are, and what is refused."""
