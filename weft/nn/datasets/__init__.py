"""Datasets for examples and tests: downloaded once, or read from a folder of yours."""

from weft.nn.datasets.images import cifar, digits, mnist
from weft.nn.datasets.text import shakespeare

__all__ = ["cifar", "digits", "mnist", "shakespeare"]
