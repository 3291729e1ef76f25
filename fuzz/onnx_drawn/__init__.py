"""Operators that random ONNX models are made of, drawn over a pool of values."""

from fuzz.onnx_drawn import arithmetic, control, layers, movement, quantized

__all__ = ["arithmetic", "control", "layers", "movement", "quantized"]
