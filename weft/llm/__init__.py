"""Language models on tensors: architectures, tokenizers, generation."""
