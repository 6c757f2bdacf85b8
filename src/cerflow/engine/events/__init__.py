"""Makes the kernels' input from rows: checks and keeps records, reads columns and signatures of a batch."""
