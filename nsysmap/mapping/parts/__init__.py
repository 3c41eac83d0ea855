"""Names what a kernel does inside an opaque region."""
