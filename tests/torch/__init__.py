"""Tests of what PyTorch writes beside a profile."""
