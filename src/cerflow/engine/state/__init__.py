"""The state between events: its arrays, how they grow and are cleaned up, and snapshots, which are checked first."""
