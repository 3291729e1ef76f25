"""Sums of products: the order in which they are summed, before anything is fused."""
