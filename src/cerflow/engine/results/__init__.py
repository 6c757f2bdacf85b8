"""The rows that a query reports: their columns and types, computed from the events of matches."""
