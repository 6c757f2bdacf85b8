"""From rows to what the kernels read: records checked and kept, columns and signatures of a batch."""
