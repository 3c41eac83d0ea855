"""What is shown and written: one module or package a form."""
