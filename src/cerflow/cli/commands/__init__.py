"""The work of the commands after their options are read: make a request, check a query, or run it in this process."""
