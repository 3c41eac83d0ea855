"""nsysmap: the post-mortem of a TensorRT profile."""

__version__ = "0.1.0"
