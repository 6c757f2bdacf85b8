"""From the match graph to what a user reads: matches listed, counted, folded, picked, numbered and shown."""
