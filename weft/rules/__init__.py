"""The algebra that all levels share, one file per root op."""
