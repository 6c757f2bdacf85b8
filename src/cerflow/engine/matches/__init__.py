"""From the match graph to the result for users: matches listed, counted, folded, picked, numbered and shown."""
