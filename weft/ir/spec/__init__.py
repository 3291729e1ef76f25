"""What is legal at each level, as tables."""
