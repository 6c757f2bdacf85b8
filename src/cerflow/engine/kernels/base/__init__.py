"""What all kernels build on: compilation, calls by address, arrays passed as one address, encoding of columns."""
