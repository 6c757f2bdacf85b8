"""What the papers say, executable: the semantics, their automata, their rewritings, and what is decided."""
