"""Operators of com.microsoft that exports use: fused layers, attention, quantized products."""
