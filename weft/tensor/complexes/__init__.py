"""Complex numbers: their parts, and functions of them."""
