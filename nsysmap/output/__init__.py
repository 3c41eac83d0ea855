"""Everything that is shown or written: one module or package for each form."""
