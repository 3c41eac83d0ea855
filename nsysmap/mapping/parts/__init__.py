"""What a kernel is inside an opaque region."""
