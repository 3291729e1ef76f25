"""Operators of ai.onnx.ml: features, linear models, trees, maps."""
