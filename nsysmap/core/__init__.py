"""The foundation of every room: tables and their declarations, errors, intervals, files."""
