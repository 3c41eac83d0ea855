"""Holds a capture to limits and baselines."""
