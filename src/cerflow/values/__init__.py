"""Values and events as plain data: columns of Arrow, decimals, events of a stream, text patterns, units of time."""
