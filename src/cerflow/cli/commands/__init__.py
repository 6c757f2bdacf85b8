"""The commands once their options are read: they make a request, check a query, or run it in this process."""
