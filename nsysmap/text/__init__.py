"""Words on a terminal: units, lines and columns, colour."""
