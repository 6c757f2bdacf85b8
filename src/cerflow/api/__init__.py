"""What users call: queries, sets of queries, programs, the builder, equivalence, and the streams given to them."""
