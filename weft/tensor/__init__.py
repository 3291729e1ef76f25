"""The user's object, one file per family of methods."""
