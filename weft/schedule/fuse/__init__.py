"""Shapes become ranges, and values are fused or materialized, by cost."""
