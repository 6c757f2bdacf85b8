"""What shows a query and its matches: pictures, pages, explanations, and questions about a short stream."""
