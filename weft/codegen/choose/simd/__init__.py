"""Which opts a kernel gets on cores with vectors."""
