"""A lowered kernel as instructions in order."""
