"""The methods of `Tensor`, a file per family."""
