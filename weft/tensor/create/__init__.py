"""New tensors: from data, constants, counting and random numbers."""
