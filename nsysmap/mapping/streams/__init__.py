"""Finds inferences that no range or graph launch bounds, among all kernels of a thread."""
