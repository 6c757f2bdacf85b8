"""The state between events: its arrays, their growth and clean-up, and snapshots, which are checked before use."""
