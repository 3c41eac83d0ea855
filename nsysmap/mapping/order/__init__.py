"""Layers of kernels by their order within an inference, and which engine they are of."""
