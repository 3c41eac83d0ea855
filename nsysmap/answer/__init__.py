"""The facts of the answer, and the words that they are told in."""
