"""What changed between two captures, engines or builds, where, and whether the difference is more
than noise.
"""
