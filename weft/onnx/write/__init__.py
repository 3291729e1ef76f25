"""Functions of tensors as ONNX files: a node of the tensor graph becomes nodes of operators."""
