"""Where a device's idle time went."""
