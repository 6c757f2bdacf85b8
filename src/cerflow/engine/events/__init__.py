"""From rows to the input of the kernels: records checked and kept, columns and signatures of a batch."""
