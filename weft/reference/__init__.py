"""The oracle: an interpreter for tensor graphs and one for lowered programs."""
