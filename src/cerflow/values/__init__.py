"""Values and events as plain data: columns that Arrow gives or takes, decimals, events of a stream, text patterns."""
