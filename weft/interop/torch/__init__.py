"""PyTorch on Weft: a backend of `torch.compile`, and modules of PyTorch as modules of Weft.

Nothing here imports torch before it is used.
"""
