"""What changed between two captures, engines or builds, where the time went, and whether the difference is more than noise."""
