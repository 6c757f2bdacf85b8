"""Makes the input of the kernels from rows: checks and keeps records, reads columns and signatures of a batch."""
