"""Finds the inferences of a trace, and which of them count."""
