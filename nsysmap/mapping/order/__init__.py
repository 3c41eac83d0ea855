"""Maps kernels to layers by their order within an inference, and decides which engine ran."""
