"""Whether a capture stays within a budget: limits on times, idle time, coverage and findings, absolute or against a baseline, for CI."""
