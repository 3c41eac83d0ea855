"""What every room is built from: tables and their declarations, errors, intervals, files."""
