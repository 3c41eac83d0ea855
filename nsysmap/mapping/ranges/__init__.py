"""Layers of kernels that were launched, or captured, inside a layer's NVTX range."""
