"""Which layers of one engine became which of another: layers are joined by what they compute, independent of the build."""
