"""Methods that programs written for PyTorch call, made of others."""
