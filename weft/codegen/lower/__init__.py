"""Passes that bring a kernel down to flat memory and explicit lanes."""
