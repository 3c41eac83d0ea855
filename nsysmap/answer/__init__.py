"""The facts of the answer, and the words that present them."""
