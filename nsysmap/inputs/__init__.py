"""Everything that reads a stranger's file."""
