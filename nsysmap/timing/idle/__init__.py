"""Finds the causes of a device's idle time."""
