"""Pictures of matches: matches and events come in as Arrow tables, an HTML page, a plot or a line of text goes out."""
