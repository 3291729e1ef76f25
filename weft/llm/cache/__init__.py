"""Keys and values of what was read: pages of memory that sequences share."""
