"""Values between tensors and the host: NumPy, lists, DLPack, files of bytes."""
