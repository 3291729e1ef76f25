"""Pure data about machines: what they can do natively, how wide they are, what things cost."""
