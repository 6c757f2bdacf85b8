"""Decides where the events of a DataFrame go: by key, by slices of time, or into one task; and orders them."""
