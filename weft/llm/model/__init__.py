"""What a model computes: the parts, the facts of an architecture, the step over a batch."""
