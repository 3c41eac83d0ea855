"""Reads what Nsight Compute counted."""
