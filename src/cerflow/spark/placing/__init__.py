"""Where the events of a DataFrame go: by key, by slices of time, or into one task; what that costs, and their order."""
