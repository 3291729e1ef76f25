"""Reductions as data: their ops, joins, products and tiles of products."""
