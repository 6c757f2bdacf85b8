"""From a transducer to the tables and programs that the kernels read."""
