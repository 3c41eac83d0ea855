"""Which layers of one engine became which of another: joined by what they compute, whatever the build."""
