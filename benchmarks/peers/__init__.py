"""The other engines: how each is found or fetched, started, and asked."""
