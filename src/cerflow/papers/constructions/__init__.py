"""The constructions on symbolic register transducers of the papers, one a file."""
