"""Programs of other libraries on Weft: what PyTorch compiles, and its modules."""
