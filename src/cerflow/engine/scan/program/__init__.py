"""What is known of a query before any row: the program of a scan, what rules rows out, and what answers by itself."""
