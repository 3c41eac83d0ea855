"""Compares two captures, engines or builds: what changed, where, and whether the difference is more
than noise.
"""
