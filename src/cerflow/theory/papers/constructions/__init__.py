"""The papers' constructions on symbolic register transducers, one per file."""
