"""Files as memory."""
