"""Kernels that read the match graph: unfolding, counting, folding, picking, slices of a listing."""
