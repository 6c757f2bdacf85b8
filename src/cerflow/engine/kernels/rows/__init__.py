"""What rows of a batch say together: those that follow each other, that wait for each other, or that nothing follows.

Arguments are those of `cerflow.engine.kernels.scan`.
"""
