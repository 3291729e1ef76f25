"""Names of PyTorch for views, their copies, parts and pieces."""
