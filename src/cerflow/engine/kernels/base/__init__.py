"""The basis of all kernels: compilation, calls by address, arrays passed as one address, encoding of columns."""
