"""What every room builds on: tables and their declarations, errors, intervals, units, text for a terminal, output files."""
