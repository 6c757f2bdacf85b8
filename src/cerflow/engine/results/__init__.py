"""The rows that a query reports: which columns, of which types, computed from the events of matches."""
