"""Index expressions of real kernels, and both engines' way to simplify them."""
