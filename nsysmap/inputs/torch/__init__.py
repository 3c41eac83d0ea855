"""Reads what PyTorch writes beside a profile."""
