"""Maps kernels to layers by the layer NVTX range in which they were launched or captured."""
