"""Runs the SQL of a rule so that it reads the given tables and nothing else."""
