"""Inferences that nothing bounds, found among all kernels of a thread."""
